"""complex32 and the 8-bit floats: kernels see them as a wider type, and what they compute is rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..backend import as_array, backend_of_array
from ..dtype import HAS_ML_DTYPES, WIDE_TYPES, dtype, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, float_bits
from ..process.processor import ON_X86_64
from ..process.reproducibility import REPRODUCIBILITY

_HALF = np.dtype(np.float16)
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
_LARGEST_E4M3FN = np.float32(448.0)
_LEAST_E8M0FNU = np.float32(2.0**-127)
_BYTE = np.dtype(np.uint8)
_NAN_E5M2 = np.uint8(0x7F)


def widened(array: Any) -> Any:
    """`array` in the type that kernels compute in; most are in it already."""
    wide = WIDE_TYPES.get(array.dtype)
    if wide is None:
        return array
    return float_bits().decoded(array) if _holds_bits(array) else array.astype(wide)


def _holds_bits(array: Any) -> bool:
    return not HAS_ML_DTYPES and isinstance(array, (np.ndarray, np.generic))


def _narrowed(array: Any, array_type: np.dtype[Any]) -> Any:
    """A wide array rounded to a narrow type; out of range as the type itself has it."""
    return float_bits().encoded(array, array_type) if _holds_bits(array) else array.astype(array_type)


def number_type(type: dtype) -> dtype:
    """The type in which NumPy can make numbers of a type: without ml-dtypes the wide one for those that it lacks."""
    return type if HAS_ML_DTYPES or type.wide is None else type.wide


def number_as(number: Any, array_type: np.dtype[Any]) -> Any:
    """A number as a 0-d array of a type, which may be narrow."""
    if array_type in WIDE_TYPES:
        return as_type(np.asarray(number), array_type)
    return np.asarray(number, array_type)


def is_complex(array_type: np.dtype[Any]) -> bool:
    """Whether arrays of `array_type` hold complex numbers."""
    return WIDE_TYPES.get(array_type, array_type).kind == "c"


def as_type(array: Any, array_type: np.dtype[Any]) -> Any:
    """A copy of `array` as `array_type`, which may be narrow: rounded, and out of range, as in PyTorch."""
    array = widened(array)
    wide = WIDE_TYPES.get(array_type)
    if wide is None:
        if array_type is _BYTE and array.dtype.kind not in "iub":
            array = array.astype(np.int64)  # so that negative numbers wrap round on every processor
        elif halves_by_way_of_single(array.dtype, array_type):
            array = array.astype(_SINGLE)
        return array.astype(array_type)
    array = array.astype(wide, copy=False)
    if array_type is float8_e4m3fn.numpy:  # PyTorch's one type that holds the largest number in place of infinity
        return _narrowed(as_array(np.clip(array, -_LARGEST_E4M3FN, _LARGEST_E4M3FN)), array_type)
    if array_type is float8_e8m0fnu.numpy:  # powers of two, without a sign: zero becomes the least of them
        magnitude = np.abs(array)
        return _narrowed(np.where(magnitude == 0, _LEAST_E8M0FNU, magnitude), array_type)
    result = _narrowed(array, array_type)
    if array_type is float8_e5m2.numpy:
        result.view(np.uint8)[np.isnan(array)] |= _NAN_E5M2
    return result


def halves_by_way_of_single(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether numbers are rounded to float32 on their way from one type to another."""
    return (ON_X86_64 or REPRODUCIBILITY.machine) and target is _HALF and source is _DOUBLE


def fill_with(array: Any, number: Any) -> None:
    """Overwrite all elements with a number, rounded as PyTorch rounds it."""
    if (ON_X86_64 or REPRODUCIBILITY.machine) and array.dtype is _HALF:
        with np.errstate(over="ignore"):
            number = np.float32(number)
    if not HAS_ML_DTYPES and array.dtype in WIDE_TYPES:
        array[...] = as_type(np.asarray(number), array.dtype)
    elif type(array) is np.ndarray and array.itemsize == 2 and array.dtype.kind not in "iu":
        array.view(np.int16).fill(np.asarray(number).astype(array.dtype).view(np.int16))  # NumPy converts each of them
    else:
        array.fill(number)


def strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """NumPy's `as_strided`, which by itself does not know every narrow type."""
    if type(array) is not np.ndarray:
        return backend_of_array(array).window(array, shape, array.dtype, 0, strides)
    if array.dtype not in WIDE_TYPES:
        return as_strided(array, shape, strides)
    return as_strided(array.view(f"u{array.itemsize}"), shape, strides).view(array.dtype)


def run_widened(kernel: Callable[..., Any], args: list[Any]) -> Any:
    """The results of `kernel` on `args`, computed in wider types where there are narrow ones among them.

    A result of the wider type is rounded to the narrow one, or for complex32 to its real part's, unless the caller
    asks for another dtype or an operand had that wider type to begin with.
    """
    arrays = [each for arg in args for each in (arg if type(arg) is list else (arg,)) if hasattr(each, "astype")]
    narrow = next((each.dtype for each in arrays if each.dtype in WIDE_TYPES), None)
    asked = next((arg for arg in args if isinstance(arg, dtype)), None)
    if narrow is None and (HAS_ML_DTYPES or asked is None or asked.wide is None):
        return kernel(*args)
    rounded = {} if narrow is None else {WIDE_TYPES[narrow]: narrow}
    if narrow is not None and is_complex(narrow):
        rounded[_SINGLE] = np.dtype(np.float16)
    for each in arrays:
        rounded.pop(each.dtype, None)
    if asked is not None:
        rounded = {} if asked.wide is None else {asked.wide.numpy: asked.numpy}
    results = kernel(*[_widened_argument(each) for each in args])
    if type(results) in (tuple, list):
        return type(results)(_rounded(each, rounded) for each in results)
    return _rounded(results, rounded)


def widening(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is told the wide type in place of a narrow one that is asked for, and whose result is rounded."""

    def run(*args: Any) -> Any:
        asks = any(isinstance(each, dtype) and each.wide is not None for each in args)
        return run_widened(kernel, list(args)) if asks else kernel(*args)

    return run


def computable(array: Any) -> Any:
    """An array that NumPy can compute with: what is held as bits is converted to the wide type."""
    return widened(array) if _holds_bits(array) else array


def _widened_argument(value: Any) -> Any:
    if hasattr(value, "astype"):
        return widened(value)
    if type(value) is list:
        return [_widened_argument(each) for each in value]
    if isinstance(value, dtype):
        return value.wide or value
    if isinstance(value, np.dtype) and not HAS_ML_DTYPES:
        return WIDE_TYPES.get(value, value)
    return value


def _rounded(result: Any, types: dict[np.dtype[Any], np.dtype[Any]]) -> Any:
    narrow = types.get(result.dtype) if hasattr(result, "astype") else None
    if narrow is None:
        return result
    return as_type(as_array(result), narrow)
