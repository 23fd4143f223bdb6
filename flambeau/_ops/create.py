"""Tensors from nothing and from Python data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.defaults import default_device
from .._core.device import CPU, META, usable_device
from .._core.dtype import DEFAULTS, FROM_NUMPY, from_numpy_dtype
from .._core.dtype import dtype as DType
from .._core.kind import Kind, kind_of
from .._core.tensor import Tensor, new_counter, wrap
from .meta import empty_meta
from .registry import export, export_method, public
from .view import as_shape


def chosen_kind(dtype: Any, device: Any, fallback: DType | None = None) -> Kind:
    """The kind that `dtype=` and `device=` ask for; None means the default."""
    if dtype is None:
        dtype = fallback or DEFAULTS.float
    elif not isinstance(dtype, DType):
        dtype = _python_type(dtype)
    return kind_of(dtype, default_device() if device is None else usable_device(device))


def _python_type(value: Any) -> DType:
    found = {float: DEFAULTS.float, int: FROM_NUMPY[np.dtype(np.int64)], bool: FROM_NUMPY[np.dtype(bool)], complex: DEFAULTS.complex}.get(value)
    if found is None:
        raise TypeError(f"dtype must be a torch.dtype, not {value!r}")
    return found


def made(array: Any, kind: Kind, requires_grad: bool) -> Tensor:
    """A new leaf over `array`."""
    tensor = Tensor._from_parts((array, kind, new_counter()))
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _allocated(shape: tuple[int, ...], kind: Kind, value: Any = None) -> Any:
    if min(shape, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if kind.device is META:
        return empty_meta(shape, kind.dtype.numpy)
    if value is None:
        return np.empty(shape, kind.dtype.numpy)
    if value == 0:
        return np.zeros(shape, kind.dtype.numpy)
    return np.full(shape, value, kind.dtype.numpy)


def _factory(name: str, value: Any, doc: str) -> Any:
    def function(
        *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        pin_memory: bool = False, memory_format: Any = None, names: Any = None,
    ) -> Tensor:  # fmt: skip
        kind = chosen_kind(dtype, device)
        result = made(_allocated(as_shape(size), kind, value), kind, requires_grad)
        if out is not None:
            from .out import store

            return store(result, out)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    export(function, name)
    return function


zeros = _factory("zeros", 0, "A tensor of the given size filled with zeros.")
ones = _factory("ones", 1, "A tensor of the given size filled with ones.")
empty = _factory("empty", None, "A tensor of the given size with whatever the memory holds.")


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested sequences, arrays."""
    from .._core.from_data import array_from_data

    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    array_type = None if dtype is None else chosen_kind(dtype, None).dtype.numpy
    array = array_from_data(data._array if isinstance(data, Tensor) else data, array_type, DEFAULTS.float.numpy)
    kind = chosen_kind(from_numpy_dtype(array.dtype), device)
    return made(array if kind.device is CPU else empty_meta(array.shape, array.dtype), kind, requires_grad)


export(tensor, "tensor")


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the array's memory."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return wrap(ndarray, CPU)


export(from_numpy, "from_numpy")


def legacy_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`Tensor(...)`, the constructor of old: sizes give uninitialised memory, data is copied, a tensor is shared."""
    raise NotImplementedError


@public(function=False)
def new_zeros(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the given size with the dtype and device of `input`."""
    kind = chosen_kind(dtype or input.dtype, device or input.device)
    return made(_allocated(as_shape(size), kind, 0), kind, requires_grad)


@public(function=False)
def new_ones(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the given size with the dtype and device of `input`."""
    kind = chosen_kind(dtype or input.dtype, device or input.device)
    return made(_allocated(as_shape(size), kind, 1), kind, requires_grad)
