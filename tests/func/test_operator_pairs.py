"""Operators under two transforms at once, beside PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import flambeau
from tests.support.differential import differential

from .test_transforms import _data, _seen

# From the module that plays `torch` to a function and the shapes of its arguments.
OPERATORS: dict[str, Callable[[Any], tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]]] = {
    "sin of a number": lambda T: (T.sin, ((),)),
    "product of numbers": lambda T: (lambda x, y: x * y * y, ((), ())),
    "number to vector": lambda T: (lambda x: x * T.arange(3, dtype=T.float64), ((),)),
    "conv1d": lambda T: (T.conv1d, ((2, 2, 5), (3, 2, 2), (3,))),
    "conv1d of one": lambda T: (lambda x, w: T.conv1d(x, w, stride=2, padding=1), ((2, 5), (3, 2, 2))),
    "conv2d in groups": lambda T: (lambda x, w: T.conv2d(x, w, groups=2), ((1, 2, 3, 3), (4, 1, 2, 2))),
    "conv_transpose1d": lambda T: (T.conv_transpose1d, ((2, 2, 3), (2, 2, 2), (2,))),
    "diff": lambda T: (lambda x: T.diff(x, n=0) + T.diff(x, prepend=x[:1]), ((3,),)),
    "pad": lambda T: (lambda x: T.nn.functional.pad(x, (1, 1), "circular"), ((1, 1, 3),)),
    "unfold": lambda T: (lambda x: x.unfold(0, 1, 1), ((),)),
    "svdvals": lambda T: (T.linalg.svdvals, ((3, 3),)),
    "nuclear norm": lambda T: (lambda x: T.linalg.matrix_norm(x, "nuc"), ((3, 3),)),
    "eigvals": lambda T: (lambda x: T.linalg.eigvals(x).abs(), ((3, 3),)),
    "eigvalsh": lambda T: (lambda x: T.linalg.eigvalsh(x + x.mT), ((3, 3),)),
    "lu": lambda T: (lambda x: tuple(T.linalg.lu(x))[1:], ((3, 3),)),
    "layer norm": lambda T: (lambda x: T.native_layer_norm(x, (3,), None, None, 1e-5), ((2, 3),)),
}  # fmt: skip


def _scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    def total(*args: Any) -> Any:
        result = function(*args)
        parts = result if isinstance(result, tuple) else (result,)
        return sum((each * each).sum() for each in parts)

    return total


def _stacked(T: Any, args: Any) -> list[Any]:
    return [T.stack([each, each * 0.5 + 0.1]) for each in args]


def _numbers(args: Any) -> tuple[int, ...]:
    return tuple(range(len(args)))


TRANSFORMS: dict[str, Callable[[Any, Callable[..., Any], Any], Any]] = {
    "vmap of vmap": lambda T, f, args: T.vmap(T.vmap(f))(*_stacked(T, _stacked(T, args))),
    "jacrev": lambda T, f, args: T.func.jacrev(f, _numbers(args))(*args),
    "jacfwd": lambda T, f, args: T.func.jacfwd(f, _numbers(args))(*args),
    "hessian": lambda T, f, args: T.func.hessian(_scalar(f), _numbers(args))(*args),
    "vmap of grad": lambda T, f, args: T.vmap(T.func.grad(_scalar(f), _numbers(args)))(*_stacked(T, args)),
    "grad of vmap": lambda T, f, args: T.func.grad(_scalar(T.vmap(f)), _numbers(args))(*_stacked(T, args)),
    "vmap of jacrev": lambda T, f, args: T.vmap(T.func.jacrev(f))(*_stacked(T, args)),
    "vmap of jvp": lambda T, f, args: T.vmap(lambda *given: T.func.jvp(f, given, given))(*_stacked(T, args)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("operator", OPERATORS)
@differential(tolerance=1e-7)
def test_pair(T: Any, operator: str, transform: str) -> Any:
    function, shapes = OPERATORS[operator](T)
    args = [_data(T, *shape, start=0.3 + number) for number, shape in enumerate(shapes)]
    if shapes == ((3, 3),):
        args[0] = args[0] + T.diag(T.tensor([2.0, 3.0, 4.0], dtype=T.float64))  # far from a singular matrix
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of loops, which are not the same ones
        return _seen(TRANSFORMS[transform](T, function, args))


@differential
def test_gradients_of_convolutions_in_one_pass(T: Any) -> Any:
    """`gradgradcheck` runs the double backward under `vmap` when it is asked to."""
    x, w, b = (_data(T, *shape).requires_grad_() for shape in ((1, 2, 4), (2, 2, 2), (2,)))
    return [
        T.autograd.gradgradcheck(function, (x, w, b), check_batched_grad=True)
        for function in (T.conv1d, T.conv_transpose1d)
    ]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradient_of_a_mask_under_vmap() -> None:
    T = flambeau
    x, masks = _data(T, 1, 1, 2, 2), _data(T, 3, 1, 1, 2, 2, start=1.0)

    def loss(mask: Any) -> Any:
        return T.nn.functional.scaled_dot_product_attention(x, x, x, mask).square().sum()

    one_by_one = T.stack([T.func.grad(loss)(each) for each in masks])
    assert one_by_one.abs().max() > 1e-3
    numpy.testing.assert_allclose(T.vmap(T.func.grad(loss))(masks).numpy(), one_by_one.numpy(), rtol=1e-10)


@differential
def test_loops_inside_loops(T: Any) -> Any:
    """What runs on one example after the other does so at each level."""
    x = T.tensor([[[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [4.0, 0.0]]])
    ends = T.tensor([[1.0, 2.0], [3.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spaces = T.vmap(T.vmap(lambda end: T.linspace(0, end, 3)))(ends)
        return T.vmap(T.vmap(T.argwhere))(x), spaces.tolist()
