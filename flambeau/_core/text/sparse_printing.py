"""How sparse tensors print."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.sparse import COO
from ..device import META
from ..dtype import DEFAULTS
from ..sparse import SparseTensor
from .printing import _append_suffixes, _format_values

_PREFIX = "tensor("
_BY_COORDINATES = ("indices", "values")
_BY_ROWS, _BY_COLUMNS = ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values")


def sparse_repr(tensor: SparseTensor) -> str:
    """The text of a sparse tensor: its places and values, its size, and whatever about it is not the default."""
    array = tensor._array
    is_coo = array.layout is COO
    names = _BY_COORDINATES if is_coo else _BY_ROWS if array.by_rows else _BY_COLUMNS
    lines = [_part(name, part) for name, part in zip(names, array.parts(), strict=True)]
    suffixes = [f"size={tuple(array.shape)}", f"nnz={array.nnz}"]
    if tensor.device.type not in ("cpu", META.type):
        suffixes.insert(0, f"device='{tensor.device}'")
    obvious = {str(DEFAULTS.float)} | ({"torch.int64", "torch.bool", "torch.complex64"} if array.size else set())
    if str(tensor.dtype) not in obvious:
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={array.layout}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    indent = " " * len(_PREFIX)
    text = _PREFIX + (",\n" + indent).join(lines)
    return _append_suffixes(text, suffixes, indent=len(_PREFIX), new_line=is_coo)


def _part(name: str, array: Any) -> str:
    opening = f"{name}=tensor("
    if array.size == 0:
        return f"{opening}[], size={tuple(array.shape)})"
    return f"{opening}{_format_values(np.asarray(array), len(_PREFIX) + len(opening))})"
