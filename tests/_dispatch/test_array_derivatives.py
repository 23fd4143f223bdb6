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
    "linear without bias": (lambda x, w: F.linear(x, w), (5, 4), (3, 4)),
    "linear without bias, three dimensions": (lambda x, w: F.linear(x, w), (2, 5, 4), (3, 4)),
    "view": (lambda x: x.view(6, 4) * 2, (2, 3, 4)),
    "transpose": (lambda x: x.transpose(0, 2) * 2, (2, 3, 4)),
    "t": (lambda x: x.t() * 2, (3, 4)),
    "squeeze": (lambda x: x.squeeze(1) * 2, (3, 1, 4)),
    "bmm": (lambda x, y: flambeau.bmm(x, y.transpose(1, 2)), (2, 3, 4), (2, 5, 4)),
    "matmul of batches": (lambda x, y: x @ y.transpose(2, 3), (2, 2, 3, 4), (2, 2, 5, 4)),
    "product with a row": (lambda x, w: w * x, (2, 3, 4), (4,)),
    "product with a matrix": (lambda x, w: x * w, (2, 3, 4), (3, 4)),
    "product with columns": (lambda x, w: x * w, (2, 3, 4), (2, 3, 1)),
    "product with rows apart": (lambda x, w: x * w, (2, 3, 4), (2, 1, 4)),
    "product with a number": (lambda x, w: x * w, (2, 3, 4), ()),
    "product with one dimension in the middle": (lambda x, w: x * w, (2, 3, 4), (3, 1)),
    "large product with a row": (lambda x, w: w * x, (4, 32, 64), (64,)),
    "large product with columns": (lambda x, w: x * w, (4, 32, 64), (4, 32, 1)),
    "large product with a turned matrix": (lambda x, w: x * w.t(), (4, 32, 64), (64, 32)),
    "large product with rows apart": (lambda x, w: x.transpose(0, 1) * w, (4, 32, 64), (32, 1, 64)),
    "expand": (lambda x: x.expand(5, 2, 3, 4) * 2, (2, 1, 4)),
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
    needed = tuple([position for position in needed if position < len(shapes)]) or (0,)
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


@pytest.mark.parametrize("name", ["linear without bias", "bmm", "layer_norm", "batch_norm"])
def test_changes_of_what_was_saved_are_noticed(name: str) -> None:
    call, *shapes = CASES[name]
    for _ in range(2):  # the second time the class of nodes has run before
        leaves = [flambeau.randn(*shape).requires_grad_() for shape in shapes]
        first = leaves[0] * 1
        result = call(first, *leaves[1:])
        first.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()
        twice = call(*leaves)
        twice.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            twice.sum().backward()
