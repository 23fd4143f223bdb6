"""Broadcasting: shapes that fit, shapes that do not, and gradients summed back to the input's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome

SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (3,),
    (2, 3),
    (2, 1),
    (1, 3),
    (4, 1, 3),
    (4, 2, 1),
    (1, 1, 1),
    (0,),
    (2, 0),
    (0, 1),
    (5,),
]


def numbered(T: Any, shape: tuple[int, ...]) -> Any:
    return T.arange(1.0, T.Size(shape).numel() + 1).view(shape)


@differential
@pytest.mark.parametrize("left", SHAPES, ids=str)
@pytest.mark.parametrize("right", SHAPES, ids=str)
def test_pairs_of_shapes(T: Any, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    a, b = numbered(T, left), numbered(T, right)
    return {
        "add": outcome(lambda: a + b),
        "less": outcome(lambda: a < b),
        "where": outcome(lambda: T.where(a > 2, a, b)),
        "in place": outcome(lambda: a.clone().mul_(b)),
        "shapes": outcome(lambda: T.broadcast_shapes(left, right)),
        "tensors": outcome(lambda: [t.shape for t in T.broadcast_tensors(a, b)]),
        "expand": outcome(lambda: a.expand(right).stride() if b.numel() > 1 else a.expand(right).shape),
        "copy": outcome(lambda: a.clone().copy_(b)),
    }


@differential
@pytest.mark.parametrize("left", SHAPES, ids=str)
@pytest.mark.parametrize("right", [(2, 3), (4, 2, 3), (1, 1), (), (0,)], ids=str)
def test_gradients_are_summed_to_the_shape(T: Any, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    a, b = numbered(T, left).requires_grad_(), (numbered(T, right) + 1).requires_grad_()

    def run() -> Any:
        result = a * b + a / b
        result.sum().backward()
        return result, a.grad, b.grad

    return outcome(run)


@differential
@pytest.mark.parametrize(
    ("left", "right", "phrase"),
    [
        ((2,), (3,), "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
        ((2, 3), (2,), "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"),
        (
            (4, 1, 2),
            (3, 3),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 2",
        ),
        ((0,), (2,), "The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 0"),
        ((5, 4), (3, 4), "The size of tensor a (5) must match the size of tensor b (3) at non-singleton dimension 0"),
    ],
)
@pytest.mark.parametrize("operation", ["add", "mul", "eq", "maximum", "atan2", "pow"])
def test_words_of_the_error(T: Any, operation: str, left: tuple[int, ...], right: tuple[int, ...], phrase: str) -> Any:
    return outcome(lambda: getattr(T, operation)(T.ones(left), T.ones(right)), phrase)


@differential
def test_in_place_does_not_grow(T: Any) -> Any:
    phrase = "doesn't match the broadcast shape"
    return {
        "row": outcome(
            lambda: T.ones(3).add_(T.ones(2, 3)), "output with shape [3] doesn't match the broadcast shape [2, 3]"
        ),
        "scalar": outcome(lambda: T.ones(()).mul_(T.ones(2)), phrase),
        "one": outcome(lambda: T.ones(1).sub_(T.ones(4)), phrase),
        "augmented": outcome(lambda: T.ones(1).__iadd__(T.ones(4)), phrase),
        "copy": outcome(lambda: T.ones(1).copy_(T.ones(4)), ""),
        "shrinks to": T.ones(2, 3).add_(T.ones(3)),
        "zero": T.ones(1).expand(0).clone().add_(T.ones(1)),
    }


TERNARY: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "where": lambda T, a, b, c: T.where(a > 0, b, c),
    "addcmul": lambda T, a, b, c: T.addcmul(a, b, c, value=2),
    "addcdiv": lambda T, a, b, c: T.addcdiv(a, b, c),
    "lerp": lambda T, a, b, c: T.lerp(a, b, c),
    "clamp": lambda T, a, b, c: T.clamp(a, b, c),
}


@differential
@pytest.mark.parametrize("operation", TERNARY)
def test_three_operands(T: Any, operation: str) -> Any:
    shapes = [((2, 3), (3,), ()), ((), (2, 1), (3,)), ((4, 1, 1), (2, 1), (3,)), ((0, 1), (1,), ()), ((2,), (3,), ())]
    observed = {}
    for left, middle, right in shapes:
        if operation == "clamp" and middle == (2, 1):
            continue  # PyTorch cannot differentiate a clamp whose bounds are broadcast against each other
        leaves = [numbered(T, shape).requires_grad_() for shape in (left, middle, right)]

        def run(leaves: list[Any] = leaves) -> Any:
            result = TERNARY[operation](T, *leaves)
            result.sum().backward()
            return result, [leaf.grad for leaf in leaves]

        observed[f"{left} {middle} {right}"] = outcome(run)
    return observed


@differential
def test_explicit_broadcasts(T: Any) -> Any:
    a, b = T.broadcast_tensors(T.arange(3).view(1, 3), T.arange(2).view(2, 1))
    return {
        "a": a,
        "b": b,
        "to": T.broadcast_to(T.arange(3), (2, 3)),
        "shapes": T.broadcast_shapes((1, 3), (2, 1), 3),
        "none": T.broadcast_shapes(),
        "zero": T.broadcast_shapes((0, 1), (1, 5)),
        "error": outcome(lambda: T.broadcast_shapes((2,), (3,)), ""),
        "to error": outcome(
            lambda: T.broadcast_to(T.arange(3), (2, 2)), "The expanded size of the tensor (2) must match"
        ),
        "expand gradient": expand_gradient(T),
    }


def expand_gradient(T: Any) -> Any:
    leaf = T.ones(3, 1, requires_grad=True)
    leaf.expand(2, 3, 4).sum().backward()
    return leaf.grad


@differential
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((2, 3), (2, 3)),
        ((), (3,)),
        ((5, 2, 3), (4, 3, 2)),
    ],
    ids=str,
)
def test_matmul_broadcasts_its_batches(T: Any, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    a, b = numbered(T, left).requires_grad_(), numbered(T, right).requires_grad_()

    def run() -> Any:
        result = a @ b
        result.sum().backward()
        return result.shape, result.detach(), a.grad, b.grad

    return outcome(run)


@differential
def test_strides_of_broadcast_results(T: Any) -> Any:
    return (
        (T.ones(3, 1) + T.ones(4)).stride(),
        (T.ones(2, 3).t() + T.ones(3, 1)).stride(),
        (T.ones(1, 4).expand(3, 4) + 1).stride(),
        (T.ones(2, 1, 4).transpose(0, 2) * T.ones(3, 1)).stride(),
    )


@differential
def test_strides_where_the_operands_disagree(T: Any) -> Any:
    dense = T.ones(2, 3, 4)
    layouts = [
        dense,
        T.ones(4, 3, 2).transpose(0, 2),
        T.ones(3, 2, 4).transpose(0, 1),
        T.ones(2, 4, 3).transpose(1, 2),
        T.ones(2, 3, 8)[:, :, ::2],
        dense[:, :1],
        T.ones(3, 2, 1).transpose(0, 1),
        T.ones(4, 3).t(),
        T.ones(4),
        T.ones(1, 3, 1).expand(2, 3, 4),
    ]

    def strides(result: Any) -> list[int]:  # where there is more than one element to step to
        return [step for step, size in zip(result.stride(), result.shape, strict=True) if size > 1]

    return [[(strides(a + b), strides(a > b)) for a in layouts] for b in layouts]


@differential
def test_results_larger_than_the_operands(T: Any) -> Any:
    x = T.arange(80 * 90, dtype=T.float32).reshape(80, 90)
    column, row = x[:, 3], x[5]
    spread = [column[:, None] * row, T.outer(column, row), x[:, :1] + row, row - x[:, 1:2], x[:, ::45] + x[:, :1]]
    return [spread, [each.stride() for each in spread], x.unfold(1, 3, 1).contiguous(), x.unfold(0, 5, 2).contiguous()]


@differential
@pytest.mark.parametrize("size", [4, 128])
def test_the_order_in_memory_is_the_same_in_every_call(T: Any, size: int) -> Any:
    """An operand without gaps that is broadcast has no say: the other one decides, in later calls as in the first."""
    first = numbered(T, (size, 8))[None, :, None, :]
    other = numbered(T, (4, 32, size)).transpose(1, 2)[..., None]
    return [[each.stride() for each in (first * other, other + first, first < other)] for _ in range(3)]
