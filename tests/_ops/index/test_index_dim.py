"""Positions along a dimension of tensors without elements: which are refused."""

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
