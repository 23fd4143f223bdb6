"""Inputs that are not strided: a function of them is checked as one of the strided tensors that they are made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.device import LAYOUTS, strided
from flambeau._core.tensor import Tensor
from flambeau._ops.sparse.compressed import sparse_compressed_tensor
from flambeau._ops.sparse.tensors import sparse_coo_tensor
from flambeau.autograd._gradcheck.check import Func, is_variable

Maker = Callable[[Tensor], Tensor]


def in_strided_inputs(func: Func, inputs: tuple[Any, ...], masked: bool) -> tuple[Func, tuple[Any, ...]]:
    """`func` and its inputs with strided tensors in place of sparse ones and those of MKL-DNN that require gradients.

    `masked`: elements that a sparse tensor does not store are no variables.
    """
    pairs = [_strided(item, masked) if is_variable(item) else None for item in inputs]
    if not any(pairs):
        return func, inputs

    def of_strided(*given: Any) -> Any:
        return func(*[item if pair is None else pair[1](item) for item, pair in zip(given, pairs, strict=True)])

    strided = [item if pair is None else pair[0] for item, pair in zip(inputs, pairs, strict=True)]
    return of_strided, tuple(
        each.detach().requires_grad_() if pair else each for each, pair in zip(strided, pairs, strict=True)
    )


def _strided(item: Tensor, masked: bool) -> tuple[Tensor, Maker] | None:
    """The strided tensor from which `item` is made, and how; None for a strided one."""
    layout, bare = item.layout, item.detach()
    if layout is strided:
        return None
    if layout is LAYOUTS["_mkldnn"]:
        return bare.to_dense(), lambda dense: dense.to_mkldnn()
    if not masked:
        return bare.to_dense(), lambda dense: dense.to_sparse(layout=layout)
    if layout is LAYOUTS["sparse_coo"]:
        whole = bare.coalesce()
        indices, shape = whole.indices(), whole.shape
        return whole.values().clone(), lambda values: sparse_coo_tensor(indices, values, shape)
    rows = layout in (LAYOUTS["sparse_csr"], LAYOUTS["sparse_bsr"])
    outer, inner = (bare.crow_indices(), bare.col_indices()) if rows else (bare.ccol_indices(), bare.row_indices())
    return bare.values().clone(), lambda values: sparse_compressed_tensor(
        outer, inner, values, bare.shape, layout=layout
    )
