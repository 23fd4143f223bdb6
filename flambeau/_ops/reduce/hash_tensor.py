"""Checksums of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.backend import as_array
from ..._core.dtype import COMPLEX, FLOAT, LEGACY_NAMES, uint64
from ..._core.tensor import Tensor
from ..._dispatch.axes import Along
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from .reductions import Dims, no_kernel, reduced, reduced_dims


@primitive(None, axes=Along("dim"))
def _xor_sum(self: Array, dim: tuple[int, ...], keepdim: bool, floating: bool) -> Array:
    bits = self.astype(np.float64).view(np.uint64) if floating else self.astype(np.int64).view(np.uint64)
    if not dim:
        return bits
    return as_array(reduced(np.bitwise_xor, bits, dim, keepdim)).astype(np.uint64, copy=False)


def _store(result: Any, out: Any, operands: tuple[Any, ...]) -> Any:
    if isinstance(out, Tensor) and out.dtype is not uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {LEGACY_NAMES[out.dtype]}")
    return write_out(result, out, operands)


@public(out=_store)
def hash_tensor(input: Tensor, dim: Dims = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the elements' bits, as float64 or int64, of all or along `dim`; `mode` is 0."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel("xor_sum_cpu", input)
    dims = reduced_dims(dim, input._array.ndim)
    if not input._array.size:
        if dim is None or dim == () or dim == []:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                "dim with the 'dim' argument."
            )
        for each in dims:
            if not input._array.shape[each]:
                raise IndexError(f"hash_tensor: Expected reduction dim {each} to have non-zero size.")
    return _xor_sum(input, dims, keepdim, input._kind.dtype.category == FLOAT)
