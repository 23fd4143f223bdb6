"""Positions along a dimension: those of tensors without elements, and reductions of numbers that are not finite."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome

CALLS: dict[str, Any] = {
    "fill": lambda T, x, dim, index, source: x.index_fill(dim, index, 1.0),
    "fill by a tensor": lambda T, x, dim, index, source: x.index_fill(dim, index, T.tensor(1.0)),
    "copy": lambda T, x, dim, index, source: x.index_copy(dim, index, source),
    "add": lambda T, x, dim, index, source: x.index_add(dim, index, source),
    "scaled add": lambda T, x, dim, index, source: x.index_add(dim, index, source, alpha=2),
    "add in place": lambda T, x, dim, index, source: x.index_add_(dim, index, source),
    "select": lambda T, x, dim, index, source: x.index_select(dim, index),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3)], ids=str)
@differential
def test_nothing_along_an_index(T: Any, call: Any, dim: int, shape: tuple[int, ...]) -> Any:
    if dim >= len(shape):
        return None
    results = []
    for positions in ([], [0], [7], [-1]):
        size = [*shape]
        size[dim] = len(positions)
        index = T.tensor(positions, dtype=T.int64)
        results.append(outcome(lambda: call(T, T.empty(shape), dim, index, T.ones(size)).shape)[:2])  # noqa: B023
    return results


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["mean", "prod", "amax", "amin"])
@pytest.mark.filterwarnings("ignore:.*in beta")
@differential
def test_gradients_of_reductions_beside_infinities(T: Any, reduce: str, include_self: bool) -> Any:
    inf, nan = float("inf"), float("nan")
    x = T.tensor([[1.0, inf, 2.0], [nan, 3.0, 4.0]], requires_grad=True)
    source = T.tensor([[1.0, 2.0, inf], [3.0, nan, 1.0]], requires_grad=True)
    by_index = x.index_reduce(1, T.tensor([0, 0, 1]), source, reduce, include_self=include_self)
    places = T.tensor([[0, 0, 1], [1, 1, 2]])
    scattered = x.scatter_reduce(1, places, source, reduce, include_self=include_self)
    return [T.autograd.grad(each.sum(), (x, source)) for each in (by_index, scattered)]
