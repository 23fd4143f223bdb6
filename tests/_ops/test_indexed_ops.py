"""Ops that read and write by position or by mask: gather, scatter, index_*, masked_*, where, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome

Op = Callable[[Any, Any, Any], Any]

# Each takes a (3, 4) tensor and a second one of the same shape, and is differentiable in both where it uses both.
OPS: dict[str, Op] = {
    "gather": lambda T, x, y: x.gather(1, T.tensor([[0, 3], [1, 1], [2, 0]])),
    "take": lambda T, x, y: x.take(T.tensor([[0, -1], [5, 5]])),
    "put": lambda T, x, y: x.put(T.tensor([[0, -1, 7, 3]]), y[:1]),
    "put accumulate": lambda T, x, y: x.put(T.tensor([[2, 2, 7, 3]]), y[:1], accumulate=True),
    "take_along_dim": lambda T, x, y: x.take_along_dim(T.tensor([[2], [0], [-1]]), 1),
    "index_select": lambda T, x, y: x.index_select(1, T.tensor([3, 0, 3])),
    "index_add": lambda T, x, y: x.index_add(0, T.tensor([2, 0, 2]), y, alpha=2),
    "index_copy": lambda T, x, y: x.index_copy(1, T.tensor([3, 0]), y[:, :2]),
    "index_fill": lambda T, x, y: x.index_fill(1, T.tensor([3, 3, 0]), y[0, 0]),
    "index_reduce mean": lambda T, x, y: x.index_reduce(0, T.tensor([1, 1, 0]), y, "mean"),
    "index_reduce prod": lambda T, x, y: x.index_reduce(0, T.tensor([1, 1, 0]), y, "prod"),
    "index_reduce amax": lambda T, x, y: x.index_reduce(0, T.tensor([1, 1, 0]), y, "amax", include_self=False),
    "scatter": lambda T, x, y: x.scatter(1, T.tensor([[0, 3, 1, 2]]), y[:1]),
    "scatter number": lambda T, x, y: x.scatter(1, T.tensor([[0, 3]]), 7.0),
    "scatter_add": lambda T, x, y: x.scatter_add(0, T.tensor([[0, 0, 1, 2], [0, 2, 1, 1]]), y[:2]),
    "scatter_reduce sum": lambda T, x, y: x.scatter_reduce(
        0, T.tensor([[0, 0, 1, 2]]), y[:1], "sum", include_self=False
    ),
    "scatter_reduce mean": lambda T, x, y: x.scatter_reduce(1, T.tensor([[0, 0, 1, 0]]), y[:1], "mean"),
    "scatter_reduce prod": lambda T, x, y: x.scatter_reduce(1, T.tensor([[0, 0, 1, 0]]), y[:1], "prod"),
    "scatter_reduce amin": lambda T, x, y: x.scatter_reduce(1, T.tensor([[0, 0, 1, 0]]), y[:1], "amin"),
    "index_put": lambda T, x, y: x.index_put((T.tensor([0, 2]), T.tensor([1, 3])), y[0, :2]),
    "index_put accumulate": lambda T, x, y: x.index_put((T.tensor([1, 1, 0]),), y, accumulate=True),
    "index_put mask": lambda T, x, y: x.index_put((x > 0,), y[0, 0]),
    "masked_fill": lambda T, x, y: x.masked_fill(x > 0, y[0, 0]),
    "masked_fill number": lambda T, x, y: x.masked_fill(y > 0, 3),
    "masked_select": lambda T, x, y: x.masked_select(y > 0),
    "masked_scatter": lambda T, x, y: x.masked_scatter(x > 0, y),
    "where": lambda T, x, y: T.where(x > 0, x * y, y),
    "where numbers": lambda T, x, y: T.where(x > 0, 2.0, x) + x.where(y > 0, 1),
    "ints and slices": lambda T, x, y: x[1:, 2] * y[0, :2] + y[..., None, 0][:2, 0],
    "index tensors": lambda T, x, y: x[T.tensor([0, 2, 2]), 1:] * y[:, T.tensor([0, 0, 3])],
    "mask": lambda T, x, y: x[x > 0] * 2,
}


def _operands(T: Any) -> tuple[Any, Any]:
    x = (T.arange(12, dtype=T.float64) * 0.7 - 3.3).reshape(3, 4).requires_grad_()
    y = (T.arange(12, dtype=T.float64) * -0.4 + 2.1).reshape(3, 4).requires_grad_()
    return x, y


def _derivatives(T: Any, op: Op) -> Any:
    x, y = _operands(T)
    result = op(T, x, y)
    weights = T.arange(1.0, result.numel() + 1, dtype=T.float64).reshape(result.shape)
    first = T.autograd.grad((result * result * weights).sum(), (x, y), create_graph=True, allow_unused=True)
    used = [each for each in first if each is not None]
    second = T.autograd.grad(sum((each * each).sum() for each in used), (x, y), allow_unused=True)
    return result, [each if each is None else each.detach() for each in first], second


@differential
@pytest.mark.parametrize("name", OPS)
def test_values_and_derivatives(T: Any, name: str) -> Any:
    return _derivatives(T, OPS[name])


@differential
@pytest.mark.parametrize(
    "expression",
    [
        "x.gather(0, i)", "x.gather(0, i.int())", "x.gather(1, i[:, :1].expand(3, 4))", "x.scatter_add(0, i, x)",
        "x.scatter_reduce(0, i, x, 'amax')", "x.scatter(0, i, x)", "x.index_select(0, i[0])",
        "x.index_add(0, i[:, 1], x)", "x.index_put((i[:, 1],), x[0], accumulate=True)", "x.masked_scatter(x > 0, x)",
        "x.masked_scatter(x[:1] > 0, x)", "x.flip(0)", "x.flip((0, 1))", "x.repeat_interleave(2, 1)",
        "x.repeat_interleave(2)",
    ],
)  # fmt: skip
def test_layouts(T: Any, expression: str) -> Any:
    x = T.arange(12.0).reshape(3, 4) - 5
    i = T.arange(12).reshape(3, 4) % 3
    turned = {"x": x.t().contiguous().t(), "i": i.t().contiguous().t()}
    apart = {"x": x.repeat(1, 2)[:, ::2], "i": i.repeat(1, 2)[:, ::2]}
    return [eval(expression, {"T": T, **each}).contiguous() for each in ({"x": x, "i": i}, turned, apart)]


@differential
@pytest.mark.parametrize(
    "change",
    [
        "index_put_((T.tensor([0, 0]),), y[:2], accumulate=True)", "index_add_(0, T.tensor([0, 0, 1]), y, alpha=3)",
        "index_copy_(0, T.tensor([2, 1, 0]), y)", "index_fill_(1, T.tensor([-1, 0]), 9)",
        "put_(T.tensor([1, 5]), y[0, :2])",
        "index_reduce_(0, T.tensor([0, 0, 1]), y, 'amin')", "scatter_(0, T.tensor([[1, 0, 2, 1]]), y[:1])",
        "scatter_(0, T.tensor([[1, 0, 2, 1]]), 4.0)", "scatter_add_(0, T.tensor([[1, 1, 1, 1], [1, 1, 1, 1]]), y[:2])",
        "scatter_reduce_(0, T.tensor([[1, 0, 2, 1]]), y[:1], 'prod')", "masked_fill_(y > 0, -1.0)",
        "masked_scatter_(y > 0, y)",
        "__setitem__((0, slice(1, 3)), y[1, :2])", "__setitem__(T.tensor([0, 0, 2]), y)", "__setitem__(y > 0, y[0, 0])",
    ],
)  # fmt: skip
def test_in_place_forms(T: Any, change: str) -> Any:
    x, y = _operands(T)
    target = x * 2
    eval(f"target.{change}", {"T": T, "target": target, "y": y})
    (target * target).sum().backward()
    with T.no_grad():
        plain = x * 2
        eval(f"plain.{change}", {"T": T, "plain": plain, "y": y})
        view = (x * 2).t().contiguous().t()
        eval(f"view.{change}", {"T": T, "view": view, "y": y})
    return target.detach(), target._version, target.grad_fn.name(), x.grad, y.grad, plain, plain._version, view


@differential
@pytest.mark.parametrize(
    "expression",
    [
        "x[0]", "x[0, 0]", "x[:]", "x[...]", "x[0:1]", "x[:, 1:2]", "x[:, 0]", "x[None]", "x[True]", "x[T.tensor(1)]",
        "x[T.tensor([1])]", "x[1:, T.tensor([1])]", "x.gather(0, i)", "x.scatter(0, i, x)", "x.scatter(0, i, 1.0)",
        "x.scatter_add(0, i, x)", "T.where(x > 0, x, 0)", "x.masked_fill(x > 0, 0)", "x.index_select(0, i[0])",
        "x.take(i)", "x.index_put((i[0],), x)", "x.scatter_reduce(0, i, x, 'sum')",
    ],
)  # fmt: skip
def test_graphs(T: Any, expression: str) -> Any:
    x = T.ones(3, 3, requires_grad=True)
    node = eval(expression, {"T": T, "x": x, "i": T.tensor([[0, 1, 2]])}).grad_fn
    below = [None if each is None else (each.name(), number) for each, number in node.next_functions]
    return node.name(), below


ERRORS: dict[str, tuple[str, str]] = {
    "gather dtype": ("x.gather(0, i.float())", "Expected dtype int32/int64 for index"),
    "gather range": ("x.gather(0, i + 5)", "index 5 is out of bounds for dimension 0 with size 2"),
    "gather dims": ("x.gather(0, i[0])", "Index tensor must have the same number of dimensions as input tensor"),
    "gather size": (
        "x.gather(1, T.zeros(3, 1, dtype=T.int64))",
        "Size does not match at dimension 0 expected index [3, 1]",
    ),
    "scatter dtype": ("x.scatter(0, i, x.double())", "Expected self.dtype to be equal to src.dtype"),
    "scatter size": ("x.scatter(0, i, T.ones(1, 2))", "to be no larger than self [2, 3] apart from dimension 0"),
    "scatter reduce": ("x.scatter(0, i, x, reduce='mean')", "reduce argument must be either add or multiply"),
    "scatter_reduce": (
        "x.scatter_reduce(0, i, x, 'x')",
        "reduce argument must be either sum, prod, mean, amax or amin",
    ),
    "index_select": ("x.index_select(0, T.tensor([5]))", "index out of range in self"),
    "index_select dims": ("x.index_select(0, i)", "Index is supposed to be a vector"),
    "index_add": ("x.index_add(0, i[0], x)", "should be equal to source.size(dim)"),
    "index_copy": ("x.index_copy(0, T.tensor([0, 4]), x)", "index_copy_(): index 4 is out of bounds"),
    "index_fill": ("x.index_fill(0, T.tensor([4]), 1)", "index 4 is out of bounds for dimension 0 with size 2"),
    "index_put": (
        "x.index_put((T.tensor([0]),), x[:1].double())",
        "Index put requires the source and destination dtypes match",
    ),
    "take": ("x.take(T.tensor([6]))", "out of range: tried to access index 6 on a tensor of 6 elements"),
    "put": ("x.put(T.tensor([0]), x)", "Expected source and index to have the same number of elements"),
    "masked_fill": ("x.masked_fill(i, 0)", "masked_fill_ only supports boolean masks"),
    "masked_fill value": ("x.masked_fill(x > 0, T.ones(1))", "only supports a 0-dimensional value tensor"),
    "masked_select": ("x.masked_select(i)", "expected BoolTensor for mask"),
    "masked_scatter": ("x.masked_scatter(x >= 0, T.ones(2))", "Number of elements of source < number of ones in mask"),
    "where": ("T.where(i, x, x)", "where expected condition to be a boolean tensor"),
    "where shapes": ("T.where(x > 0, x, T.ones(4))", "The size of tensor a (3) must match the size of tensor b (4)"),
}


@differential
@pytest.mark.parametrize("name", ERRORS)
def test_errors(T: Any, name: str) -> Any:
    expression, phrase = ERRORS[name]
    variables = {"T": T, "x": T.arange(6.0).reshape(2, 3), "i": T.tensor([[0, 1, 1]])}
    return outcome(lambda: eval(expression, variables), phrase)


@differential
def test_where_promotes(T: Any) -> Any:
    mask = T.tensor([[True, False]])
    operands = [
        1,
        2.5,
        True,
        T.tensor(1),
        T.tensor(2.0, dtype=T.float64),
        T.ones(1, 2, dtype=T.float16),
        T.ones(2, 1),
    ]
    return [T.where(mask, left, right) for left in operands for right in operands], T.where(mask, T.ones(2), 1j)


@differential
def test_positions(T: Any) -> Any:
    x = T.tensor([[0, 3, 0], [4, 0, 5]])
    return (
        x.nonzero(), x.nonzero(as_tuple=True), T.argwhere(x), T.where(x > 3), T.tensor(3).nonzero(),
        T.isin(x, T.tensor([3, 5])), T.isin(x, 4, invert=True), T.unravel_index(T.tensor([1, 5]), (2, 3)),
    )  # fmt: skip


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dtype", ["int64", "float16", "bfloat16", "float32"])
@differential(tolerance=1e-2)
def test_many_elements_scattered(T: Any, reduce: str, dtype: str) -> Any:
    x = (T.arange(6000) % 7 + 1).reshape(60, 100).to(getattr(T, dtype))
    index = (T.arange(6000) * 7919 % 1009 % 60).reshape(60, 100)
    values = (T.arange(6000) * 31 % 17 % 3 + 1).reshape(60, 100).to(getattr(T, dtype))
    if reduce == "prod":  # no product is beyond half precision
        values = values.clamp(max=1)
    if x.is_floating_point():
        values[5, 7] = T.nan
    kinds = [(0, True), (0, False), (1, True), (1, False)]
    return [x.scatter_reduce(dim, index, values, reduce, include_self=included) for dim, included in kinds]
