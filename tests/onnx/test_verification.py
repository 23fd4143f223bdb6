"""`onnx.verification`, `onnx.testing`, and the values and axes of a program that was exported."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as T
from flambeau.onnx.testing import assert_onnx_program
from flambeau.onnx.verification import VerificationInfo, verify_onnx_program
from tests.support.differential import differential

from .cases import floats


class Net(T.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = T.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.line(x).relu(), x.sum(1)


def exported() -> Any:
    sizes = {"x": {0: T.export.Dim("rows")}}
    return T.onnx.export(Net().eval(), (floats(3, 4),), dynamo=True, dynamic_shapes=sizes, verbose=False)


def test_results_are_compared() -> None:
    program, x = exported(), floats(5, 4)
    first, second = verify_onnx_program(program, (x,))
    assert max(first.max_abs_diff, second.max_abs_diff) < 1e-5
    assert int(first.abs_diff_hist[0].sum()) == 10
    assert first.asdict()["expected_dtype"] == "torch.float32"
    assert len(verify_onnx_program(program)) == 2
    assert_onnx_program(program, args=(x,))
    assert_onnx_program(program, args=(x,), backend="reference")
    program.apply_weights({name: T.ones(shape) for name, shape in (("line.weight", (2, 4)), ("line.bias", (2,)))})
    assert verify_onnx_program(program, (x,))[0].max_abs_diff > 0.1
    with pytest.raises(AssertionError):
        assert_onnx_program(program, args=(x,))


def test_values_inside_and_names_of_axes() -> None:
    program, x = exported(), floats(3, 4)
    graph = program.model_proto.graph
    inner = graph.node[0].output[0]
    (value,) = program.compute_values([inner], (x,))
    assert value.shape[0] == 3
    with pytest.raises(ValueError, match="nowhere"):
        program.compute_values(["nowhere"], (x,))
    before = graph.input[0].type.tensor_type.shape.dim[0].dim_param
    program.rename_axes({before: "batch"})
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert program(x)[0].shape == (3, 2)


@differential
def test_differences_of_tensors(T: Any) -> Any:
    import importlib

    info = importlib.import_module(f"{T.__name__}.onnx.verification").VerificationInfo
    found = info.from_tensors("x", T.tensor([1.0, 2.0, 4.0]), T.tensor([1.0, 2.5, 3.0]))
    return found.name, found.max_abs_diff, found.max_rel_diff, found.abs_diff_hist, found.rel_diff_hist, found.asdict()


def test_it_has_fields() -> None:
    assert VerificationInfo.from_tensors("n", 1, 1.5).max_abs_diff == 0.5
