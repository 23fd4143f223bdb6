"""TorchScript has no dtypes, layouts and memory formats: it has numbers that stand for them."""

from __future__ import annotations

from typing import Any

from ..._core import device as devices
from ..._core import dtype as dtypes


def words(text: str) -> list[str]:
    """Names that stand in one text, for lists that would be long otherwise."""
    return text.split()


_DTYPES = words(
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz "
    "float8_e4m3fnuz uint16 uint32 uint64"
)
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc")


def _named(name: str) -> Any:
    import flambeau

    return getattr(flambeau, name)


def dtype_of_number(number: Any) -> Any:
    """The dtype that a number stands for, or the dtype itself."""
    return _numbered(number, _DTYPES, "dtype")


def layout_of_number(number: Any) -> Any:
    """The layout that a number stands for, or the layout itself."""
    return _numbered(number, _LAYOUTS, "layout")


def memory_format_of_number(number: Any) -> Any:
    """The memory format that a number stands for, or the memory format itself."""
    return _numbered(number, _MEMORY_FORMATS, "memory format")


def _numbered(number: Any, names: Any, what: str) -> Any:
    if isinstance(number, (dtypes.dtype, devices.layout, devices.memory_format)):
        return number
    if type(number) is not int or not 0 <= number < len(names):
        raise RuntimeError(f"there is no {what} number {number}")
    return _named(names[number])


def number_of_dtype(value: dtypes.dtype) -> int:
    """The number of a dtype."""
    return _DTYPES.index(str(value).removeprefix("torch."))


def number_of_layout(value: devices.layout) -> int:
    """The number of a layout."""
    return _LAYOUTS.index(str(value).removeprefix("torch."))


def number_of_memory_format(value: devices.memory_format) -> int:
    """The number of a memory format."""
    return _MEMORY_FORMATS.index(str(value).removeprefix("torch."))
