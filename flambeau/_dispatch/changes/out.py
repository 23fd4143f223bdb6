"""`out=`: results stored in a tensor that the caller supplies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..._core.arrays.lazy_signs import content, overwrite
from ..._core.device import strided
from ..._core.dtype import LEGACY_NAMES, can_cast
from ..._core.modes import THREAD
from ..._core.tensor import Tensor
from .history import end_change
from .inplace import check_no_overlap, check_partial_overlap
from .storing import store_elements


def store(result: Tensor, out: Tensor, operands: Sequence[Any] = ()) -> Tensor:
    """Copy `result`, computed from `operands`, into `out`, which takes on its shape, and then its strides too."""
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if THREAD.modes.grad and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad. Leave out= away, or compute under torch.no_grad()."
        )
    if THREAD.modes.forward_level >= 0 and any(has_tangent(each) for each in (result, out)):
        raise NotImplementedError(
            "Trying to use forward AD with an operator that does not support it because it is an out= function: leave "
            "out= away"
        )
    if out.device is not result.device:
        raise RuntimeError(f"Expected out tensor to be on {result.device}, but found out on {out.device}")
    if not can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"result type {LEGACY_NAMES[result.dtype]} can't be cast to the desired output type "
            f"{LEGACY_NAMES[out.dtype]}"
        )
    if out.layout is not strided:
        if result.layout is not out.layout:
            raise RuntimeError(f"Expected out tensor to have layout {result.layout}, but it has {out.layout}")
        out._array.take(result._array)  # the parts as they are
        end_change(out)
        return out
    if resize_output(out, result._array.shape) and not result.is_contiguous():
        _take_strides(out, result)
    check_no_overlap(out)
    for operand in operands:
        for each in operand if isinstance(operand, (tuple, list)) else (operand,):
            if isinstance(each, Tensor):
                check_partial_overlap(out, each)
    if THREAD.modes.interpreters:
        store_elements(out, result)
    elif not out._kind.dataless:
        overwrite(out, content(result))
    end_change(out)
    return out


def has_tangent(tensor: Tensor) -> bool:
    """Whether a tensor carries a derivative in forward mode."""
    return tensor._extra is not None and bool(tensor._extra.tangents)


def _take_strides(out: Tensor, result: Tensor) -> None:
    """Lay out a tensor that was resized as a result is, gaps included."""
    shape, strides = result._array.shape, result.stride()
    reach = sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) + 1
    if reach >= result._array.size > 0:  # else elements share memory, and nothing can be written there
        out.resize_(reach).as_strided_(shape, strides)


def resize_output(out: Tensor, shape: tuple[int, ...]) -> bool:
    """Give `out` the shape of a result, with a warning if it had elements; whether it had another one."""
    if out._array.shape == shape:
        return False
    if out._array.size != 0:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which "
            f"does not match the required output shape {list(shape)}. Reuse such a tensor by out.resize_(0).",
            UserWarning,
            stacklevel=5,
        )
    out.resize_(shape)
    return True
