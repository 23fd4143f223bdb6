"""Operators of sparse tensors that have no public function of their own name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.dtype import float32, int64
from .._core.tensor import Tensor
from .._dispatch.public.registry import function_named


def _with_dims(
    sparse_dim: int, dense_dim: int, size: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor without elements."""
    indices = function_named("", "zeros")((sparse_dim, 0), dtype=int64, device=device)
    values = function_named("", "zeros")((0, *list(size)[sparse_dim:]), dtype=dtype, device=device)
    return function_named("", "sparse_coo_tensor")(indices, values, list(size))


def _with_dims_and_tensors(
    sparse_dim: int, dense_dim: int, size: Sequence[int], indices: Tensor, values: Tensor, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool | None = None, is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of indices and values."""
    made = function_named("", "sparse_coo_tensor")(indices, values, list(size), dtype=dtype, device=device)
    return made._coalesced_(is_coalesced) if is_coalesced is not None else made


def _csr_sum(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sums of the rows or the columns of a CSR matrix, as a CSR matrix."""
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    return self.to_dense().sum(dim, keepdim, dtype=dtype).to_sparse_csr()


def _csr_prod(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The products of what is stored in the rows or the columns of a CSR matrix, as a CSR matrix."""
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    dense = self.to_dense()
    stored = function_named("", "sparse_csr_tensor")(
        self.crow_indices(), self.col_indices(), self.values() * 0 + 1, self.shape
    ).to_dense()
    result = dense.where(stored != 0, 1).to(self.dtype if dtype is None else dtype)
    for each in dim:
        result = result.prod(each, keepdim=True)
    return result.where(stored.sum(list(dim), True) != 0, 0).to_sparse_csr()  # where nothing is, nothing comes out


def _norm(self: Tensor, p: Any = 2, dim: Any = (), keepdim: bool = False, dtype: Any = None) -> Any:
    """The norm of a sparse tensor, over all dimensions."""
    if dim and len(dim) != self.dim():
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    if keepdim or dtype is not None:
        given = "keepdim=True" if keepdim else "'dtype' argument"
        raise RuntimeError(f"norm_sparse currently does not support {given}")
    return self.norm(p)


def _checked(layout: str) -> Callable[..., None]:
    def check(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], *_: Any) -> None:
        """An error if these are no parts of a sparse tensor."""
        import flambeau

        options = {"layout": getattr(flambeau, layout), "check_invariants": True}
        flambeau.sparse_compressed_tensor(compressed, plain, values, list(size), **options)

    return check


def _check_indices(is_crow: bool, compressed: Tensor, plain: Tensor, cdim: int, dim: int, nnz: int) -> None:
    """An error if these are no indices of a compressed matrix."""
    values = compressed.new_zeros(nnz, dtype=float32)
    _checked("sparse_csr" if is_crow else "sparse_csc")(
        compressed, plain, values, (cdim, dim) if is_crow else (dim, cdim)
    )


def _broadcast(self: Any, size: Sequence[int]) -> Any:
    """A sparse tensor repeated along dimensions of size 1 and new ones in front."""
    if self.dense_dim():
        raise NotImplementedError("_sparse_broadcast_to of a tensor with dense dimensions is not built yet")
    made = function_named("", "sparse_coo_tensor")
    stored = made(self._indices(), self._values() * 0 + 1, self.shape).to_dense().expand(list(size)) != 0
    return made(stored.nonzero().t(), self.to_dense().expand(list(size))[stored], list(size))


def _check_coo(indices: Tensor, values: Tensor, size: Sequence[int], *_: Any) -> None:
    """An error if these are no parts of a sparse tensor."""
    function_named("", "sparse_coo_tensor")(indices, values, list(size), check_invariants=True)


def _check_compressed(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], layout: Any) -> None:
    """An error if these are no parts of a sparse tensor."""
    _checked(str(layout).removeprefix("torch."))(compressed, plain, values, size)


SPARSE: dict[str, Callable[..., Any]] = {
    "_sparse_coo_tensor_with_dims": _with_dims,
    "_sparse_coo_tensor_with_dims_and_tensors": _with_dims_and_tensors,
    "_sparse_csr_sum": _csr_sum,
    "_sparse_sparse_matmul": lambda self, other: function_named("sparse", "mm")(self, other),
    "_spdiags": lambda diagonals, offsets, shape, layout=None: function_named("sparse", "spdiags")(
        diagonals, offsets, tuple(shape), layout
    ),
    "sparse_sampled_addmm": lambda self, mat1, mat2, *, beta=1, alpha=1: function_named("sparse", "sampled_addmm")(
        self, mat1, mat2, beta=beta, alpha=alpha
    ),
    "copy_sparse_to_sparse_": lambda self, src, non_blocking=False: self.copy_(src),
    "_sparse_csr_prod": _csr_prod,
    "_sparse_broadcast_to": _broadcast,
    "_validate_compressed_sparse_indices": _check_indices,
    "native_norm": _norm,
    "_dimI": lambda self: self.sparse_dim(),
    "_dimV": lambda self: self.dense_dim(),
    "_validate_sparse_coo_tensor_args": _check_coo,
    "_validate_sparse_compressed_tensor_args": _check_compressed,
    **{f"_validate_sparse_{each}_tensor_args": _checked(f"sparse_{each}") for each in ("csr", "csc", "bsr", "bsc")},
}
"""By the names of operators."""
