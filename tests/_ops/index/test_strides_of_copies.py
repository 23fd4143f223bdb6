"""Ops that write into a copy of their first argument: the copy has PyTorch's strides, whatever the argument's are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.oracle import pytorch

INPUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda T: T.zeros(3, 2).t(),
    "strided": lambda T: T.zeros(4, 2)[::2].t(),
    "expanded": lambda T: T.zeros(1, 3).expand(2, 3),
    "channels last": lambda T: T.zeros(2, 3, 4, 5).to(memory_format=T.channels_last),
}
CALLS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "masked_fill": lambda T, x, mask, rows, source: x.masked_fill(mask, 1.0),
    "masked_fill by a tensor": lambda T, x, mask, rows, source: x.masked_fill(mask, T.tensor(1.0)),
    "masked_fill, enlarged": lambda T, x, mask, rows, source: x.masked_fill(mask[None], 1.0),
    "masked_scatter": lambda T, x, mask, rows, source: x.masked_scatter(mask, source),
    "index_fill": lambda T, x, mask, rows, source: x.index_fill(0, rows, 1.0),
    "index_fill by a tensor": lambda T, x, mask, rows, source: x.index_fill(0, rows, T.tensor(1.0)),
    "index_add": lambda T, x, mask, rows, source: x.index_add(0, rows, source),
    "index_copy": lambda T, x, mask, rows, source: x.index_copy(0, rows, source),
    "index_put": lambda T, x, mask, rows, source: x.index_put((rows,), source),
    "index_reduce": lambda T, x, mask, rows, source: x.index_reduce(0, rows, source, "prod"),
    "scatter": lambda T, x, mask, rows, source: x.scatter(0, mask.long(), source),
    "scatter of a number": lambda T, x, mask, rows, source: x.scatter(0, mask.long(), 1.0),
    "scatter, added": lambda T, x, mask, rows, source: x.scatter(0, mask.long(), source, reduce="add"),
    "scatter_add": lambda T, x, mask, rows, source: x.scatter_add(0, mask.long(), source),
    "scatter_reduce": lambda T, x, mask, rows, source: x.scatter_reduce(0, mask.long(), source, "sum"),
    "put": lambda T, x, mask, rows, source: x.put(rows, T.ones(2)),
}


@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("input", INPUTS)
def test_results_have_pytorch_strides(call: str, input: str) -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for T in (pytorch, flambeau):
            x = INPUTS[input](T)
            mask, source = T.zeros(x.shape) > 0, T.ones(x.shape)
            found.append(tuple(CALLS[call](T, x, mask, T.tensor([0, 1]), source).stride()))
    assert found[0] == found[1]
