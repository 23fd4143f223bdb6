"""Python numbers on their way into a tensor: the value must fit the dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..._core.dtype import BOOL, C_NAMES, FLOAT, INTEGER, dtype
from ..._core.modes import THREAD
from ..._core.tensor import PLAIN_TYPES, Tensor

_LARGEST = {
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2fnuz": 57344.0,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": math.inf,
}
_FINITE = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz")
"""The types that have no infinity."""


def fitting(value: Any, target: dtype) -> Any:
    """`value` as a number that an array of `target` takes without loss of its range, or PyTorch's error."""
    category = target.category
    if type(value) is int:
        _check_64_bits(value)
    if category == FLOAT:
        if type(value) is not float:
            value = _real(value, target)
        if abs(value) > _LARGEST[target.name] and (math.isfinite(value) or target.name in _FINITE):
            _refuse(value, target)
        return value
    if category == BOOL:
        return bool(value)
    if category == INTEGER:
        value = _real(value, target)
        if isinstance(value, float):
            limits = np.iinfo(target.numpy)
            if not math.isfinite(value) or not limits.min <= value <= limits.max:
                _refuse(value, target)  # one that is cut off must be in range before: -0.5 is not one of uint8
            value = int(value)
        return _wrapped(value, target)
    value = complex(value)
    if target.name == "complex64":
        for part in (value.real, value.imag):
            if abs(part) > _LARGEST["float32"] and math.isfinite(part):
                _refuse(value, target)
    return value


def element(value: Any, target: dtype) -> Any:
    """`value` as the number in a tensor without dimensions, which in half precision may be infinite."""
    if target.category == FLOAT and target.itemsize <= 2 and not isinstance(value, (complex, np.complexfloating)):
        return float(value)
    return fitting(value, target)


def check_value(value: Tensor, target: dtype) -> None:
    """Refuse a tensor without dimensions, with which another one is filled, if its number does not fit the dtype."""
    own = value._kind.dtype
    if own is target or type(value) not in PLAIN_TYPES or value._kind.dataless or THREAD.modes.interpreters:
        return
    if own.category > target.category or own.itemsize > target.itemsize:
        fitting(value.item(), target)


def whole(value: Any, caller: str, name: str, position: int) -> int:
    """`value` as the int that an argument must be: bools are none, 0-d tensors of integers are."""
    number = integer(value)
    if number is None:
        raise TypeError(f"{caller}(): argument '{name}' (position {position}) must be int, not {type(value).__name__}")
    return number


def integer(value: Any, place: int = 0) -> int | None:
    """`value` as the integer that PyTorch takes it for, at some place in a list or alone; None if it takes it for none.

    What holds one integer is one: tensors that are not recorded, arrays, NumPy's scalars. Bools are none in the first
    place.
    """
    if type(value) is int:
        return value
    if isinstance(value, Tensor):
        is_one = value.numel() == 1 and not value.requires_grad and value._kind.dtype.category <= INTEGER
        return int(value.item()) if is_one else None
    if isinstance(value, np.ndarray):
        return int(value.item()) if value.size == 1 and value.dtype.kind in "iu" else None
    if isinstance(value, (bool, np.bool_)):
        return int(value) if place and isinstance(value, bool) else None
    return int(value.__index__()) if hasattr(value, "__index__") else None


def integers(values: Sequence[Any]) -> tuple[int, ...] | None:
    """The integers that PyTorch takes the items of a list for; None if it takes one of them for none."""
    found = [integer(each, place) for place, each in enumerate(values)]
    numbers = tuple([each for each in found if each is not None])
    return numbers if len(numbers) == len(found) else None


def _real(value: Any, target: dtype) -> Any:
    if isinstance(value, (complex, np.complexfloating)):
        if value.imag != 0:
            _refuse(value, target)
        value = value.real
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, not {type(value).__name__}")
    if target.category == FLOAT and isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            _refuse(value, target)
    return value


def _check_64_bits(value: int) -> None:
    if value >= 2**64:
        raise OverflowError(f"int too big to convert: {value}")
    if value < -(2**63):
        raise OverflowError(f"can't convert negative int to unsigned: {value} has more than 64 bits")


def scaling(value: Any, target: dtype) -> Any:
    """`alpha` or `beta`, by which tensors of `target` are multiplied: the number that `target` takes for it.

    Factors in floating point stay as they are; only the range is looked at.
    """
    if target.category == FLOAT and (type(value) is float or type(value) is int) and -448 <= value <= 448:
        return value
    fitted = fitting(value, target)
    return fitted if target.category <= INTEGER else value


def _wrapped(value: int, target: dtype) -> int:
    limits = np.iinfo(target.numpy)
    if target.is_signed:
        if not limits.min <= value <= limits.max:
            _refuse(value, target)
        return value
    if not -int(limits.max) <= value <= limits.max:  # negative numbers wrap round, as in C
        _refuse(value, target)
    return value % (int(limits.max) + 1)


def _refuse(value: Any, target: dtype) -> NoReturn:
    name = f"{target.name}_t" if target.category == INTEGER else C_NAMES[target.name]
    raise RuntimeError(f"value cannot be converted to type {name} without overflow: {value} into a {target} tensor")
