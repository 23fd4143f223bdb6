"""Operators on numbers, strings, lists and dicts: pure functions of Python's values, with TorchScript's rules.

Integers have 64 bits there, and overflow; so no program makes numbers that fill the memory.
"""

from __future__ import annotations

import cmath
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from .numbers_of import words
from .types import NotInLanguage

_LONGEST = 1 << 28
"""No list or string is made longer than this by repetition."""


def wrapped(value: Any) -> Any:
    """A number as TorchScript keeps it."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)
    return value


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b, *rest: wrapped(compute(a, b))


def _add(a: Any, b: Any, alpha: Any = 1) -> Any:
    if isinstance(a, (list, str, tuple)):
        return a + b
    return wrapped(a + b * alpha)


def _sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    return wrapped(a - b * alpha)


def _mul(a: Any, b: Any) -> Any:
    for sequence, times in ((a, b), (b, a)):
        if isinstance(sequence, (list, str)):
            if len(sequence) * max(times, 0) > _LONGEST:
                raise MemoryError("a list is repeated too often")
            return sequence * times
    return wrapped(a * b)


def _div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return a // b
    if rounding_mode == "trunc":
        return math.trunc(a / b)
    return a / b


def _floordiv(a: Any, b: Any) -> Any:
    if b == 0 and isinstance(b, float):
        return a / math.copysign(math.inf, b) if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b)
    return a // b


def _pow(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return wrapped(pow(a, b, 1 << 64)) if b >= 0 else float(a) ** b
    return a**b


def _pow_of_numbers(a: Any, b: Any) -> Any:
    """`a ** b` of integers is a float in TorchScript, but where the operator says otherwise."""
    return float(a) ** b if isinstance(a, int) and isinstance(b, int) else a**b


def _shifted(a: int, b: int) -> int:
    return int(wrapped(a << (b % 64)))


def _same(a: Any, b: Any) -> Any:
    """Equality: tensors inside of lists are compared as wholes."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or (a.shape == b.shape and bool((a == b).all()))
    return a == b


def _is(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, (int, float, str, bool)) and a == b)


def _place(values: Sequence[Any], item: Any) -> int:
    for number, each in enumerate(values):
        if _same(each, item):
            return number
    raise RuntimeError(f"ValueError: {item!r} is not in list")


def _index(values: Any, item: Any, start: int = 0, end: int = -1) -> int:
    if isinstance(values, str):
        found = _find(values, item, start, end)
        if found < 0:
            raise RuntimeError("ValueError: substring not found")
        return found
    return _place(values, item)


def _contains(values: Any, item: Any) -> bool:
    if isinstance(values, (dict, str)):
        return item in values
    return any(_same(each, item) for each in values)


def _insert(values: list[Any], place: int, item: Any) -> None:
    values.insert(place, item)


def _pop(values: Any, *key: Any) -> Any:
    if not values:
        raise RuntimeError("pop from empty list")
    if isinstance(values, dict) and key and key[0] not in values and len(key) == 1:
        raise RuntimeError(f"KeyError: {key[0]!r}")
    return values.pop(*key)


def _delete(values: Any, key: Any) -> None:
    if isinstance(values, dict) and key not in values:
        raise RuntimeError(f"KeyError: {key!r}")
    del values[key]


def _set_item(values: Any, key: Any, item: Any) -> Any:
    if isinstance(values, list) and not -len(values) <= key < len(values):
        raise IndexError("list index out of range")
    values[key] = item
    return values


def _get_item(values: Any, key: Any) -> Any:
    if isinstance(values, dict) and key not in values:
        raise RuntimeError(f"KeyError: {key!r}")
    if not isinstance(values, (list, tuple, dict, str)):
        raise NotInLanguage(f"an element of {type(values).__name__}")
    try:
        return values[key]
    except IndexError:
        raise IndexError("list index out of range") from None


def _slice(values: Any, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    return values[start:end:step]


def _sort(values: list[Any], reverse: bool = False) -> None:
    values.sort(reverse=reverse)


def _remove(values: list[Any], item: Any) -> None:
    del values[_place(values, item)]


def _copy(values: Any) -> Any:
    return values.copy()


def _list_of(values: Any) -> list[Any]:
    return list(values)


def _dict_of(pairs: Any = ()) -> dict[Any, Any]:
    return dict(pairs)


def _range_list(count: Any, *rest: Any) -> list[int]:
    numbers = range(count, *rest)
    if len(numbers) > _LONGEST:
        raise MemoryError("a list of numbers is too long")
    return list(numbers)


# ----- strings --------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """A value as TorchScript prints it in strings."""
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(text_of, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    return str(value)


def _float_text(value: float) -> str:
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return f"{int(value)}."
    return f"{value:.17g}"


def _format(template: str, *args: Any) -> str:
    parts = template.split("{}")
    if len(parts) - 1 > len(args):
        raise RuntimeError("Too few arguments for format string: " + template)
    texts = [text_of(each) for each in args]
    return "".join(part + text for part, text in zip(parts, [*texts, *[""] * len(parts)], strict=False))


def _percent(template: str, *args: Any) -> str:
    values = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    return template % tuple([each if isinstance(each, int) else text_of(each) for each in values])


def _find(text: str, part: str, start: int = 0, end: int = -1) -> int:
    return text.find(part, start, len(text) if end == -1 else end)


def _split(text: str, separator: str | None = None, most: int = -1) -> list[str]:
    return text.split(separator, most)


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    if len(text) * max(len(new), 1) > _LONGEST:
        raise MemoryError("a string grows too long")
    return text.replace(old, new, most)


def _join(separator: str, parts: list[str]) -> str:
    return separator.join(parts)


def _padded(text: str, width: int, fill: str = " ", *, how: str) -> str:
    if width > _LONGEST:
        raise MemoryError("a string grows too long")
    padded: str = getattr(text, how)(width, *(() if how == "zfill" else (fill,)))
    return padded


_TEXT_METHODS = words(
    "upper lower capitalize title swapcase isdigit isalpha isalnum isdecimal isnumeric isspace isupper islower "
    "istitle isidentifier isprintable startswith endswith strip lstrip rstrip rsplit splitlines partition rpartition "
    "rfind rindex expandtabs"
)


def _text_method(name: str) -> Callable[..., Any]:
    return lambda text, *args: getattr(text, name)(*args) if isinstance(text, str) else _no_text(name, text)


def _no_text(name: str, value: Any) -> Any:
    raise NotInLanguage(f"{name} of {type(value).__name__}")


# ----- mathematics ----------------------------------------------------------------------------------------------------


def _mathematics(name: str) -> Callable[[Any], Any]:
    real, complex_one = getattr(math, name), getattr(cmath, name, None)

    def compute(value: Any) -> Any:
        if isinstance(value, complex) and complex_one is not None:
            return complex_one(value)
        try:
            return real(value)
        except (ValueError, OverflowError):
            return _at_the_edge(name, value)

    return compute


def _at_the_edge(name: str, value: Any) -> float:
    """Where Python raises, C's functions give an infinity or NaN."""
    if name in ("log", "log2", "log10") and value == 0:
        return -math.inf
    if name == "log1p" and value == -1:
        return -math.inf
    if name in ("exp", "expm1", "cosh"):
        return math.inf
    if name == "sinh":
        return math.copysign(math.inf, value)
    return math.nan


def _logarithm(value: Any, base: Any = None) -> Any:
    natural = _mathematics("log")
    return natural(value) if base is None else natural(value) / natural(base)


def _of_any(name: str) -> Callable[[Any], bool]:
    return lambda value: getattr(cmath if isinstance(value, complex) else math, name)(value)


def _round(value: Any, digits: int = 0) -> Any:
    return float(round(value, digits))


def _minimum(*args: Any) -> Any:
    if len(args) == 2 and isinstance(args[0], list):
        return min(args)
    return min(*args) if len(args) > 1 else min(args[0])


def _maximum(*args: Any) -> Any:
    return max(*args) if len(args) > 1 else max(args[0])


PLAIN: dict[str, Callable[..., Any]] = {
    "add": _add, "add_": _add, "sub": _sub, "mul": _mul, "div": _div, "floordiv": _floordiv,
    "floor_divide": _floordiv, "remainder": operator.mod, "fmod": math.fmod, "pow": _pow_of_numbers,
    "mathremainder": math.remainder, "neg": lambda a: wrapped(-a), "abs": abs, "eq": _same,
    "ne": lambda a, b: not _same(a, b), "lt": operator.lt, "gt": operator.gt, "le": operator.le, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__not__": operator.not_,
    "__lshift__": _shifted, "__rshift__": lambda a, b: a >> min(b, 64), "__is__": _is,
    "__isnot__": lambda a, b: not _is(a, b), "bitwise_not": operator.invert, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "logical_not": operator.not_,
    "__round_to_zero_floordiv": lambda a, b: math.trunc(a / b), "__contains__": _contains,
    "__getitem__": _get_item, "__getitem": _get_item, "_set_item": _set_item, "__delitem__": _delete,
    "Delete": _delete, "__derive_index": lambda index, start, step: start + index * step,
    "__range_length": lambda low, high, step: len(range(low, high, step)), "len": len, "slice": _slice,
    "append": list.append, "extend": list.extend, "insert": _insert, "pop": _pop, "remove": _remove,
    "reverse": list.reverse, "sort": _sort, "sorted": sorted, "copy": _copy, "count": lambda a, b, *r: a.count(b, *r),
    "clear": lambda values: values.clear(), "index": _index, "list": _list_of, "dict": _dict_of,
    "keys": lambda values: list(values.keys()), "values": lambda values: list(values.values()),
    "items": lambda values: list(values.items()), "get": lambda values, key, other=None: values.get(key, other),
    "setdefault": lambda values, key, other: values.setdefault(key, other), "update": lambda a, b: a.update(b),
    "popitem": lambda values: values.popitem(), "list_with_default": lambda given, default: given or default,
    "all": all, "any": any, "sum": sum, "max": _maximum, "min": _minimum, "ord": ord, "chr": chr, "hex": hex,
    "oct": oct, "bin": bin, "str": text_of, "format": _format, "percentFormat": _percent, "find": _find,
    "split": _split, "replace": _replace, "join": _join, "substr": lambda text, start, end=-1: text[start:end],
    "ljust": lambda *args: _padded(*args, how="ljust"), "rjust": lambda *args: _padded(*args, how="rjust"),
    "center": lambda *args: _padded(*args, how="center"), "zfill": lambda *args: _padded(*args, how="zfill"),
    "Int": int, "Float": float, "Bool": bool, "Complex": complex, "complex": complex,
    "real": lambda value: value.real, "imag": lambda value: value.imag, "conj": lambda value: value.conjugate(),
    "polar": cmath.rect, "angle": cmath.phase, "atan2": math.atan2, "copysign": math.copysign, "gcd": math.gcd,
    "frexp": math.frexp, "ldexp": math.ldexp, "modf": math.modf, "hypot": math.hypot, "factorial": math.factorial,
    "ceil": math.ceil, "floor": math.floor, "round": _round, "isnan": _of_any("isnan"),
    "isinf": _of_any("isinf"), "isfinite": _of_any("isfinite"), "divmod": divmod,
    "log": _logarithm,
    "warn": lambda message, stacklevel=2: warnings.warn(str(message), UserWarning, stacklevel=3),
    **{name: _text_method(name) for name in _TEXT_METHODS},
    **{
        name: _mathematics(name)
        for name in words(
            "sqrt exp expm1 log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh degrees "
            "radians erf erfc gamma lgamma fabs"
)
    },
}  # fmt: skip
"""By the operator's name without `aten::`."""
