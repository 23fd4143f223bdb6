"""Turn Python data (`torch.tensor(data)`) into a fresh NumPy array, by PyTorch's rules of shape and dtype.

Nested sequences are flattened one level at a time, so that the work per element happens inside C loops (`map`,
`chain`, `np.array`), and so that every error can name the position of the element that caused it.

Two inputs on which PyTorch silently drops elements are errors here: `[[], [1]]` and `[[], 1]`. Arrays with negative
strides or foreign byte order, and objects with `__array__`, are accepted where PyTorch refuses them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from ..dtype import WIDE_TYPES, from_numpy_dtype, promote_types
from ..modes import beside_the_ops
from ..process.processor import ON_X86_64
from ..process.reproducibility import REPRODUCIBILITY
from ..size import fits_int64
from .narrow import as_type, widened

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

BOOL: DType = np.dtype(np.bool_)
INT64: DType = np.dtype(np.int64)
UINT64: DType = np.dtype(np.uint64)
FLOAT16: DType = np.dtype(np.float16)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)
COMPLEX128: DType = np.dtype(np.complex128)

_PYTHON_NUMBERS = frozenset((bool, int, float, complex))
_PYTHON_INTEGERS = frozenset((bool, int))
_FLOATS = {float}
_LISTS = frozenset((list, tuple))
_IMMUTABLE, _HEAP_TYPE = 1 << 8, 1 << 9  # CPython's flags: only of the second are the types that a class statement made
_MAX_DIMS = 64  # NumPy's limit; a list that contains itself runs into it
_INTEGER_LIMITS: dict[DType, Any] = {
    np.dtype(f"{sign}int{bits}"): np.iinfo(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def array_from_data(data: Any, dtype: DType | None, default_float: DType) -> Array:
    """A new array with the values of `data`: numbers, nested sequences, arrays, tensors, or a mix of them.

    >>> array_from_data([[1, 2], [3, 4.5]], None, np.dtype(np.float32))
    array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    cls = type(data)
    if cls is list or cls is tuple:
        if not data:
            return np.empty(0, default_float if dtype is None else dtype)
        leaves, shape, types = _flatten(data, dtype)
        if isinstance(leaves, np.ndarray):
            return _copy_array(leaves, dtype)
    elif cls in _PYTHON_NUMBERS:
        if cls is float and dtype is None and -3e38 < data < 3e38 and default_float.itemsize >= 4:
            return np.array(data, default_float)  # the commonest call; nothing can overflow
        leaves, shape, types = [data], (), {cls}
    else:
        array = _as_array(data)
        if array is not None:
            return _copy_array(array, dtype)
        if isinstance(data, (str, bytes)):
            raise TypeError(
                f"new(): invalid data type '{type_name(cls)}'; expected numbers, arrays or sequences of them"
            )
        if is_sequence(data):
            return array_from_data(_to_list(data), dtype, default_float)
        leaves, shape, types = [data], (), {cls}
    if np.void in types:
        leaves, types, dtype = _numbers_of_bits(leaves, dtype)
    if dtype is None:
        dtype = _infer_dtype(leaves, types, default_float, shape)
    array = _store(leaves, types, dtype, shape)
    return array if len(shape) == 1 else array.reshape(shape)


def _numbers_of_bits(leaves: list[Any], dtype: DType | None) -> tuple[list[Any], set[type], DType | None]:
    """Leaves, among them elements held as bits (`float_bits.py`), as numbers; their types; the dtype of the whole."""
    narrow = {leaf.dtype if type(leaf) is np.void else None for leaf in leaves}
    leaves = [widened(leaf)[()] if type(leaf) is np.void else leaf for leaf in leaves]
    return leaves, set(map(type, leaves)), narrow.pop() if dtype is None and len(narrow) == 1 else dtype


def is_sequence(value: Any) -> bool:
    """What CPython's `PySequence_Check` accepts: anything with items by position, mappings excluded."""
    if isinstance(value, (Mapping, np.generic)):
        return False
    # hasattr would also find `__getitem__` of the class of an enumeration's member, which indexes the class
    return any("__getitem__" in vars(base) for base in type(value).__mro__)


# Arrays


def _as_array(value: Any) -> Array | None:
    """The array inside a tensor, a NumPy array, or an object with `__array__`; None for everything else."""
    if isinstance(value, np.ndarray):
        return value
    inner = getattr(value, "_array", None)
    if isinstance(inner, np.ndarray):
        beside_the_ops()
        return inner
    if hasattr(type(value), "__array__") and not isinstance(value, np.generic):
        return np.asarray(value)
    return None


def _copy_array(array: Array, dtype: DType | None) -> Array:
    source = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    from_numpy_dtype(source)  # raises for strings, objects, dates
    if dtype is None or dtype == source:
        return np.array(array, dtype=source, order="K", subok=False)
    with np.errstate(over="ignore", invalid="ignore"):
        array = widened(array)
        if array.dtype.kind == "c" and _computed(dtype).kind not in "cb":
            array = array.real
        return as_type(array, dtype) if dtype in WIDE_TYPES else array.astype(dtype, order="K", subok=False)


def _computed(dtype: DType) -> DType:
    """The type in which arrays of `dtype` are computed: for most, their own."""
    return WIDE_TYPES.get(dtype, dtype)


# Shape


def _flatten(data: Any, dtype: DType | None) -> tuple[Any, tuple[int, ...], set[type]]:
    """The leaves of a nested sequence in order, its shape, and the set of the leaves' types.

    A list of equal arrays comes back stacked into one array instead of as leaves.
    """
    level = data
    shape = [len(data)]
    while True:
        types = set(map(type, level))
        if types <= _PYTHON_NUMBERS:
            return level, tuple(shape), types
        if not types <= _LISTS:
            if len(shape) == 1 and types == {np.ndarray} and _are_stackable(level):
                return np.stack(level), (), types
            level = [_plain_item(item, position, shape, dtype) for position, item in enumerate(level)]
            types = set(map(type, level))
            if list not in types and tuple not in types:
                return level, tuple(shape), types
            if not types <= _LISTS:
                _raise_mixed_depth(level, shape, dtype)
        if len(shape) == _MAX_DIMS:
            raise ValueError(f"too many dimensions 'list': the data is nested deeper than {_MAX_DIMS} levels")
        lengths = set(map(len, level))
        if len(lengths) > 1:
            _raise_ragged(level, shape)
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))


def _are_stackable(arrays: list[Array]) -> bool:
    return arrays[0].ndim > 0 and len({(array.shape, array.dtype) for array in arrays}) == 1


def _plain_item(item: Any, position: int, shape: list[int], dtype: DType | None) -> Any:
    """`item` as a number or as a list of items: tensors of one element become NumPy scalars, sequences become lists."""
    cls = type(item)
    if cls in _PYTHON_NUMBERS or cls in _LISTS:
        return item
    if isinstance(item, str) and item and position == 0:  # as in PyTorch, the first element decides about the shape
        raise ValueError(f"too many dimensions 'str': found {item!r}{_at(position, shape)}; a tensor holds numbers")
    if isinstance(item, (str, bytes)):
        if position == 0 or dtype is None:
            raise TypeError(f"new(): invalid data type '{type_name(cls)}': found {item!r}{_at(position, shape)}")
        return item
    if isinstance(item, np.ndarray):
        if item.ndim == 0:
            raise TypeError(f"len() of unsized object: a 0-dim numpy array{_at(position, shape)}; call .item() on it")
        return list(item)
    inner = getattr(item, "_array", None)
    if isinstance(inner, np.ndarray):
        beside_the_ops()
        return _tensor_leaf(inner, position, shape, dtype)
    if isinstance(item, np.generic):
        return item
    if hasattr(cls, "__array__"):
        array = np.asarray(item)
        return list(array) if array.ndim else array[()]
    return _to_list(item) if is_sequence(item) else item


def _tensor_leaf(array: Array, position: int, shape: list[int], dtype: DType | None) -> Any:
    """The NumPy scalar in a tensor of one element, if a tensor of `dtype` can take it."""
    dtype = None if dtype is None else _computed(dtype)
    where = _at(position, shape)
    from_integer = array.dtype.kind in "iub"
    to_integer = from_integer if dtype is None else dtype.kind in "iub"
    if to_integer and not (from_integer and array.size == 1):
        phrase = "only integer tensors of a single element can be converted to an index"
        raise TypeError(
            f"{phrase}: found {array.dtype.name} of shape {list(array.shape)}{where}; join with torch.stack"
        )
    if array.size != 1:
        phrase = "only one element tensors can be converted to Python scalars"
        raise ValueError(f"{phrase}: found shape {list(array.shape)}{where}; join tensors with torch.stack")
    value = array.reshape(-1)[0]
    if dtype is not None and dtype.kind in "fV" and array.dtype.kind == "c" and value.imag:
        raise RuntimeError(f"value cannot be converted to type double without overflow: {value}{where} is complex")
    return bool(value) if array.dtype == BOOL else value


def _to_list(sequence: Any) -> list[Any]:
    """A list of a sequence's items; `tolist` also unpacks memoryviews of several dimensions."""
    if isinstance(sequence, memoryview):
        return list(sequence.tolist())
    if isinstance(sequence, Iterable):
        return list(sequence)
    return [sequence[position] for position in range(len(sequence))]


def _raise_ragged(level: list[Any], shape: list[int]) -> NoReturn:
    expected = len(level[0])
    position = next(place for place, item in enumerate(level) if len(item) != expected)
    raise ValueError(
        f"expected sequence of length {expected} at dim {len(shape)} (got {len(level[position])}): the sequence"
        f"{_at(position, shape)} differs from the first one; every row of a tensor has the same length"
    )


def _raise_mixed_depth(level: list[Any], shape: list[int], dtype: DType | None) -> NoReturn:
    """A level holds both lists and leaves: say which of them does not fit the first one."""
    if dtype is None:
        for position, item in enumerate(level):
            if type(item) not in _LISTS:
                _leaf_dtype(type(item), FLOAT32, partial(_at, position, shape))
    first_is_list = type(level[0]) in _LISTS
    position = next(place for place, item in enumerate(level) if (type(item) in _LISTS) != first_is_list)
    if first_is_list and not isinstance(level[position], (str, bytes)):
        found = f"{type_name(type(level[position]))}{_at(position, shape)}"
        raise TypeError(f"not a sequence: found {found}, where the first element is a sequence")
    if not isinstance(level[0], (int, float, complex, np.generic, list, tuple)):
        position = 0
    name = type_name(type(level[position]))
    wants_float = type(level[0]) in (float, complex) if dtype is None else _computed(dtype).kind in "fcV"
    phrase = (
        f"must be real number, not {name}" if wants_float else f"'{name}' object cannot be interpreted as an integer"
    )
    raise TypeError(f"{phrase}: found {level[position]!r:.60}{_at(position, shape)}; every element must be as deep")


def _at(position: int, shape: Iterable[int]) -> str:
    """Where the element number `position` of a level of this shape stands: ` at position [1][0]`."""
    shape = tuple(shape)
    return " at position " + "".join(f"[{int(part)}]" for part in np.unravel_index(position, shape)) if shape else ""


# Dtype


def _infer_dtype(leaves: list[Any], types: set[type], default_float: DType, shape: tuple[int, ...]) -> DType:
    if not types:
        return default_float
    if len(types) == 1:
        (only,) = types
        return _leaf_dtype(only, default_float, partial(_at, 0, shape))
    result: DType | None = None
    for cls in types:
        dtype = _leaf_dtype(cls, default_float, partial(_first_of_type, cls, leaves, shape))
        result = dtype if result is None else _promote(result, dtype)
    assert result is not None
    return result


def _promote(left: DType, right: DType) -> DType:
    return promote_types(from_numpy_dtype(left), from_numpy_dtype(right)).numpy


def _first_of_type(cls: type, leaves: list[Any], shape: tuple[int, ...]) -> str:
    return _at(next(place for place, leaf in enumerate(leaves) if type(leaf) is cls), shape)


def _leaf_dtype(cls: type, default_float: DType, where: Callable[[], str]) -> DType:
    if cls is float:
        return default_float
    if cls is int:
        return INT64
    if cls is bool:
        return BOOL
    if cls is complex:
        return from_numpy_dtype(default_float).to_complex().numpy
    if issubclass(cls, np.generic):
        dtype: DType = np.dtype(cls)
        from_numpy_dtype(dtype)  # raises for strings, objects, dates
        return dtype
    for number, dtype in ((int, INT64), (float, default_float)):
        if issubclass(cls, number):
            return dtype
    raise RuntimeError(f"Could not infer dtype of {type_name(cls)}{where()}; tensors hold numbers only")


def type_name(cls: type) -> str:
    """The name by which Python's own messages call a type: classes written in Python go without their module."""
    written_in_python = cls.__flags__ & (_HEAP_TYPE | _IMMUTABLE) == _HEAP_TYPE
    return cls.__name__ if written_in_python or cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


# Values


def _store(leaves: list[Any], types: set[type], dtype: DType, shape: tuple[int, ...]) -> Array:
    """A 1-d array of `leaves` converted to `dtype`, with PyTorch's checks."""
    if dtype in WIDE_TYPES:
        narrow: Array = as_type(_store(leaves, types, WIDE_TYPES[dtype], shape), dtype)
        return narrow
    if dtype.kind in "iu":
        return _store_integers(leaves, types, dtype, shape)
    if not types <= _PYTHON_NUMBERS:
        leaves = [_plain_number(value, dtype, position, shape) for position, value in enumerate(leaves)]
        types = set(map(type, leaves))
    if dtype == BOOL:
        return np.array(leaves, BOOL)
    if dtype.kind != "c" and complex in types:
        position = next(place for place, value in enumerate(leaves) if type(value) is complex)
        raise TypeError(f"must be real number, not complex{_at(position, shape)}; pass a complex dtype")
    try:
        if dtype in (FLOAT64, COMPLEX128):
            return np.array(leaves, dtype)
        if dtype is FLOAT32 and types == _FLOATS and len(leaves) < 64 and min(leaves) > -3e38 and max(leaves) < 3e38:
            return np.array(leaves, dtype)  # nothing can overflow
        with np.errstate(over="ignore"):  # too large for a narrow float is inf, as in PyTorch
            if dtype == FLOAT32:
                return np.array(leaves, dtype)
            if dtype.kind == "c":
                return np.array(leaves, COMPLEX128).astype(dtype)
            # bfloat16 is rounded from float32 everywhere, as in PyTorch
            single = ON_X86_64 or REPRODUCIBILITY.machine or dtype != FLOAT16
            return np.array(leaves, FLOAT32 if single else FLOAT64).astype(dtype)
    except OverflowError:
        position = next(place for place, value in enumerate(leaves) if not _fits_float(value))
        raise OverflowError(f"int too large to convert to float{_at(position, shape)}") from None


def _fits_float(value: Any) -> bool:
    try:
        complex(value)
    except OverflowError:
        return False
    return True


def _plain_number(value: Any, dtype: DType, position: int, shape: tuple[int, ...]) -> Any:
    """A NumPy scalar or an object with a number protocol, as the Python number that `dtype` is filled from."""
    if type(value) in _PYTHON_NUMBERS:
        return value
    if not isinstance(value, (str, bytes)):
        try:
            if dtype == BOOL:
                return bool(value) if isinstance(value, (float, complex, np.bool_)) else bool(operator.index(value))
            if dtype.kind == "c":
                return complex(value)
            return float(value.real if isinstance(value, np.complexfloating) else value)
        except TypeError:
            pass
    name = type_name(type(value))
    if dtype == BOOL:
        raise TypeError(f"'{name}' object cannot be interpreted as an integer{_at(position, shape)}")
    raise TypeError(f"must be real number, not {name}{_at(position, shape)}")


def _store_integers(leaves: list[Any], types: set[type], dtype: DType, shape: tuple[int, ...]) -> Array:
    if types <= _PYTHON_INTEGERS:
        try:
            if dtype in (INT64, UINT64):
                return np.array(leaves, dtype)
            wide = np.array(leaves, INT64)
        except OverflowError:
            pass  # the element is found and reported below
        else:
            low, high = _integer_bounds(dtype)
            if not wide.size or (wide.min() >= low and wide.max() <= high):
                return wide.astype(dtype)
    return np.array([_wrapped_integer(value, dtype, position, shape) for position, value in enumerate(leaves)], dtype)


def _integer_bounds(dtype: DType) -> tuple[int, int]:
    """The Python ints that convert: unsigned types also take the negatives that wrap to a value of theirs."""
    limits = _INTEGER_LIMITS[dtype]
    return (-int(limits.max) if dtype.kind == "u" and dtype != UINT64 else int(limits.min)), int(limits.max)


def _wrapped_integer(value: Any, dtype: DType, position: int, shape: tuple[int, ...]) -> int:
    """`value` as an int that `dtype` holds, or PyTorch's error for one that does not fit."""
    limits = _INTEGER_LIMITS[dtype]
    holds = f"{dtype.name} holds {limits.min} to {limits.max}"
    overflow = f"value cannot be converted to type {dtype.name} without overflow: {value!r}"
    if isinstance(value, float):
        if dtype == UINT64:
            raise TypeError(f"an integer is required: got {value!r}{_at(position, shape)}")
        # The limit is compared before truncation, as in PyTorch: 127.9 does not fit int8.
        if not limits.min <= value <= limits.max:  # False for nan too
            raise RuntimeError(f"{overflow}{_at(position, shape)}; {holds}")
        return int(value)
    try:
        # Before NumPy 2.3 its bools are integers, with a warning.
        number = int(value) if isinstance(value, np.bool_) and hasattr(value, "__index__") else operator.index(value)
    except TypeError:
        name = type_name(type(value))
        raise TypeError(f"'{name}' object cannot be interpreted as an integer{_at(position, shape)}") from None
    low, high = _integer_bounds(dtype)
    if low <= number <= high:
        return number & int(limits.max) if dtype.kind == "u" else number
    if dtype == UINT64:
        phrase = "can't convert negative int to unsigned" if number < 0 else "int too big to convert"
        raise OverflowError(f"{phrase}: {number}{_at(position, shape)}; {holds}")
    if not fits_int64(number):
        raise ValueError(
            f"Overflow when unpacking long long: {number}{_at(position, shape)}; int64 holds -2**63 to 2**63-1"
        )
    raise RuntimeError(f"{overflow}{_at(position, shape)}; {holds}")
