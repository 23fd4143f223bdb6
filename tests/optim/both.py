"""Optimizers of PyTorch and of Flambeau, run side by side on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as pytorch
from torch.testing._internal.common_optimizers import optim_db

import flambeau

SHAPES = [(3, 4), (), (2, 2, 3)]
MATRICES = [(3, 4), (6, 2)]
ROUNDING = {"float64": 1e-12, "float32": 2e-5, "complex128": 1e-12, "bfloat16": 0.05}


def converted(value: Any, framework: Any) -> Any:
    """PyTorch's tensors in `value` as those of `framework`, or the other way round."""
    if isinstance(value, (pytorch.Tensor, flambeau.Tensor)):
        plain: Any = value.detach()
        if plain.is_sparse:
            places, values = converted(plain._indices(), framework), converted(plain._values(), framework)
            return framework.sparse_coo_tensor(places, values, tuple(plain.shape))
        kind = str(plain.dtype).removeprefix("torch.").removeprefix("flambeau.")
        array = np.array(plain.to(dtype=plain.float().dtype).tolist() if kind == "bfloat16" else plain.tolist())
        return framework.tensor(array, dtype=getattr(framework, kind))
    if isinstance(value, dict):
        return {key: converted(each, framework) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(converted(each, framework) for each in value)
    return value


def parameters(framework: Any, dtype: str, shapes: Any = SHAPES, seed: int = 0) -> list[Any]:
    """The same leaves in both frameworks."""
    return [
        framework.tensor(array, dtype=getattr(framework, dtype)).requires_grad_(True)
        for array in _arrays(np.random.default_rng(seed), shapes, dtype)
    ]


def _arrays(generator: Any, shapes: Any, dtype: str) -> list[Any]:
    imaginary = 1j if dtype.startswith("complex") else 0
    return [
        np.asarray(generator.normal(size=shape) + (imaginary * generator.normal(size=shape) if imaginary else 0))
        for shape in shapes
    ]


def run(framework: Any, optimizer: Any, params: list[Any], steps: int, seed: int = 1) -> None:
    """Make steps with random gradients; every third step leaves one parameter without."""
    generator = np.random.default_rng(seed)
    for step in range(steps):
        optimizer.zero_grad()
        arrays = _arrays(generator, [tuple(each.shape) for each in params], str(params[0].dtype).split(".")[-1])
        for number, (param, array) in enumerate(zip(params, arrays, strict=True)):
            if step % 3 != 2 or number != 1:
                param.grad = framework.tensor(array, dtype=param.dtype)
        optimizer.step()


def arrays_of(value: Any) -> Any:
    """Tensors as nested lists, anywhere in `value`."""
    if isinstance(value, (pytorch.Tensor, flambeau.Tensor)):
        return np.array(value.detach().to_dense().tolist())
    if isinstance(value, dict):
        return {key: arrays_of(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [arrays_of(each) for each in value]
    return value


def assert_same(expected: Any, actual: Any, rounding: float, path: str = "") -> None:
    """Compare nested observations of both frameworks."""
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(actual, expected, rtol=rounding, atol=rounding, err_msg=path)
    elif isinstance(expected, dict):
        assert list(expected) == list(actual), f"{path}: {list(expected)} and {list(actual)}"
        for key in expected:
            assert_same(expected[key], actual[key], rounding, f"{path}[{key!r}]")
    elif isinstance(expected, list):
        assert len(expected) == len(actual), path
        for number, (left, right) in enumerate(zip(expected, actual, strict=True)):
            assert_same(left, right, rounding, f"{path}[{number}]")
    elif isinstance(expected, float):
        assert type(expected) is type(actual), path
        np.testing.assert_allclose(actual, expected, rtol=rounding, atol=rounding, err_msg=path)
    else:
        assert type(expected).__name__ == type(actual).__name__, path
        assert str(expected) == str(actual), path


def database(name: str) -> Any:
    """The entry of PyTorch's own database of optimizers."""
    return next(each for each in optim_db if each.optim_cls.__name__ == name)


NAMES = [each.optim_cls.__name__ for each in optim_db]
