"""onnxruntime as the judge of exported models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime

import flambeau
from flambeau.utils._pytree import tree_leaves


def session(model: Any) -> Any:
    """A session that uses one thread, so that results do not depend on the machine."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def tensors(value: Any) -> list[Any]:
    """The tensors in a nest of arguments or results."""
    return [each for each in tree_leaves(value) if isinstance(each, flambeau.Tensor)]


def run(model: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
    """What onnxruntime computes from tensors."""
    made = session(model)
    names = [each.name for each in made.get_inputs()]
    found: list[np.ndarray] = made.run(None, dict(zip(names, [each.detach().numpy() for each in inputs], strict=True)))
    return found


def read(model: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
    """What Flambeau computes when it reads the model."""
    with flambeau.no_grad():
        return [each.numpy() for each in tensors(flambeau.onnx.load_module(model)(*inputs))]


def check(actual: Sequence[np.ndarray], expected: Any, tolerance: float = 1e-4) -> None:
    """Fail where results differ in shape, dtype or value."""
    wanted = tensors(expected)
    assert len(actual) == len(wanted)
    for number, (ours, theirs) in enumerate(zip(wanted, actual, strict=True)):
        array = ours.detach().numpy()
        assert array.shape == theirs.shape, f"output {number}"
        assert array.dtype == theirs.dtype, f"output {number}"
        np.testing.assert_allclose(theirs, array, rtol=tolerance, atol=tolerance, err_msg=f"output {number}")
