"""An ordinary backward pass computes some derivatives on arrays; one that is recorded, on tensors: both must agree."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential

F = flambeau.nn.functional

CASES: dict[str, Any] = {
    "linear": (lambda x, w, b: F.linear(x, w, b), (5, 4), (3, 4), (3,)),
    "linear, transposed input": (lambda x, w, b: F.linear(x.t(), w, b), (4, 5), (3, 4), (3,)),
    "linear, three dimensions": (lambda x, w, b: F.linear(x, w, b), (2, 5, 4), (3, 4), (3,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (2, 3, 4), (4,), (4,)),
    "layer_norm of everything": (lambda x, w, b: F.layer_norm(x, (3, 4), w, b), (3, 4), (3, 4), (3, 4)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (3, 2, 4), (2,), (2,)),
    "batch_norm in evaluation": (
        lambda x, w, b: F.batch_norm(x, flambeau.tensor([0.5, -1.0]), flambeau.tensor([2.0, 0.25]), w, b),
        (3, 2, 4),
        (2,),
        (2,),
    ),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (1, 2, 3, 4),
        (1, 2, 3, 4),
        (1, 2, 3, 4),
    ),
    "attention that sees nothing": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, flambeau.tensor([[True], [False]]).expand(2, 3)),
        (1, 1, 2, 4),
        (1, 1, 3, 4),
        (1, 1, 3, 4),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("needed", [(0, 1, 2), (0,), (1, 2)])
def test_arrays_and_tensors_agree(name: str, needed: tuple[int, ...]) -> None:
    function, *shapes = CASES[name]
    flambeau.manual_seed(0)
    operands = [flambeau.randn(shape) for shape in shapes]
    for position in needed:
        operands[position].requires_grad_()
    result = function(*operands)
    weight = flambeau.randn(result.shape)
    inputs = [operands[position] for position in needed]
    recorded = flambeau.autograd.grad(result, inputs, weight, create_graph=True)
    plain = flambeau.autograd.grad(function(*operands), inputs, weight)
    for left, right in zip(plain, recorded, strict=True):
        assert not left.requires_grad
        assert left.shape == right.shape
        flambeau.testing.assert_close(left, right.detach(), rtol=1e-5, atol=1e-6)


@differential
def test_small_numbers_change_integers_in_place(T: Any) -> Any:
    """Results wrap around; divisors are checked; versions count."""
    observed: list[Any] = []
    for dtype in (T.uint8, T.int8, T.int32, T.int64):
        x = T.tensor([0, 1, 100, 127]).to(dtype)
        observed += [x.add_(100).clone(), x.sub_(5).clone(), x.mul_(3).clone(), x.floor_divide_(7).clone(), x._version]
    count = T.tensor(0)
    for _ in range(3):
        count.add_(1)
    count += 127
    expanded = T.zeros(1, dtype=T.int64).expand(3)
    try:
        expanded.add_(1)
    except RuntimeError as error:
        observed.append("single memory location" in str(error))
    return observed, count, count._version
