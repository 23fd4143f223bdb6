"""Whatever holds data as a tensor, sharing its memory where that can be: as_tensor, asarray, buffers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..._core.device import CPU
from ..._core.dtype import DEFAULTS, LEGACY_NAMES
from ..._core.kind import kind_of
from ..._core.process.caller import warn_user_once
from ..._core.process.defaults import device_for
from ..._core.tensor import Tensor
from ..._dispatch.public.registry import export, guard
from ..tensor.interchange import from_dlpack
from .constants import as_dtype, chosen_kind, from_numpy, made, tensor


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where it is a tensor or an array of the right dtype already."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else _moved(data, dtype, device)
    if isinstance(data, np.ndarray) and min(data.strides, default=0) >= 0 and data.dtype.isnative:
        return _moved(from_numpy(data), dtype, device_for(device))
    return tensor(data, dtype=dtype, device=device)


def _moved(source: Tensor, dtype: Any, device: Any) -> Tensor:
    from ..tensor.convert import converted

    kind = kind_of(
        source.dtype if dtype is None else as_dtype(dtype, "as_tensor"),
        source._kind.device if device is None else device_for(device),
    )
    return source if kind is source._kind.plain else converted(source, kind, None)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """`obj` (tensor, array, buffer, nested sequence) as a tensor; `copy` forces or forbids a copy."""
    if isinstance(obj, Tensor):
        source: Tensor | None = obj
    elif isinstance(obj, np.ndarray):
        source = from_numpy(obj)
    elif isinstance(obj, (np.generic, list, tuple, str, int, float, complex)):
        source = None
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        source = from_dlpack(obj)
    elif _has_buffer(obj):
        source = frombuffer(obj, dtype=DEFAULTS.float if dtype is None else dtype)
    else:
        source = None
    if source is None:
        if copy is False and isinstance(obj, np.generic):
            raise RuntimeError("can't alias NumPy scalars: leave copy=False away, or make an array of it")
        if isinstance(obj, np.generic):
            obj = obj.item() if dtype is not None else obj
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor: leave copy=False away")
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    kind = chosen_kind(dtype, source._kind.device if device is None else device, source.dtype, "asarray")
    if copy is False and kind is not source._kind.plain:
        if kind.dtype is not source.dtype:
            names = LEGACY_NAMES[source.dtype], LEGACY_NAMES[kind.dtype]
            raise ValueError(f"can't alias tensor with dtype {names[0]!r} into dtype {names[1]!r}.")
        raise ValueError(f"can't alias tensor from device '{source.device}' to '{kind.device}'.")
    result = _moved(source, kind.dtype, kind.device)
    if copy and result is source:
        result = result.clone()
    if requires_grad is None and source.requires_grad:
        warn_user_once(
            "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad. Pass requires_grad=False for "
            "a tensor without history."
        )
    if requires_grad is None or requires_grad == result.requires_grad:
        return result
    return result.requires_grad_(requires_grad) if result.is_leaf else result.detach()


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A one-dimensional tensor on the memory of an object with Python's buffer protocol."""
    kind = chosen_kind(dtype, CPU, None, "frombuffer")
    item = kind.dtype.itemsize
    try:
        memory = memoryview(buffer)
    except TypeError:
        raise ValueError(f"object does not implement Python buffer protocol: {type(buffer).__name__}") from None
    if memory.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors: this tensor can be "
            "read, and writing to it is an error.",
            UserWarning,
            stacklevel=2,
        )
    length = memory.nbytes
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % item:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({item})"
            )
        count = (length - offset) // item
    elif offset + count * item > length:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    elements = np.frombuffer(buffer, np.uint8, count * item, offset).view(kind.dtype.numpy)
    return made(elements, kind, requires_grad)


for _function in (as_tensor, asarray, frombuffer):
    export(guard(_function), _function.__name__)
