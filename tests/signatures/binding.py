"""Real calls that show which arguments a built-in function takes: by keyword one by one, and by position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from .overloads import Overload, Parameter

_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
_VALUES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda T: T.ones(2, 2),
    "number": lambda T: 1,
    "numbers": lambda T: [1, 1],
    "int": lambda T: 1,
    "float": lambda T: 0.5,
    "bool": lambda T: False,
    "str": lambda T: "sum",
    "ints": lambda T: (1, 1),
    "floats": lambda T: (0.5, 0.5),
    "bools": lambda T: (True, True),
    "dtype": lambda T: T.float32,
    "layout": lambda T: T.strided,
    "device": lambda T: "cpu",
    "memory_format": lambda T: T.contiguous_format,
    "generator": lambda T: T.Generator(),
    "data": lambda T: [0.5, 1.5],
    "array": lambda T: numpy.ones(2),
    "class": lambda T: T.Tensor,
    "names": lambda T: None,
    "other": lambda T: None,
}
"""An ordinary value for each kind of parameter."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call: by position without a name."""

    kind: str
    name: str | None = None
    count: int = 2
    spread: bool = False

    def made(self, T: Any) -> Any:
        """The value, of the library's own classes."""
        if self.kind == "tensors":
            return tuple(T.ones(2, 2) for _ in range(self.count))
        return _VALUES[self.kind](T)

    def __str__(self) -> str:
        return f"{self.name}={self.kind}" if self.name else "*" * self.spread + self.kind


Call = tuple[Argument, ...]


def described(call: Call) -> str:
    """A call in words: `(tensor, dim=int)`."""
    return f"({', '.join(map(str, call))})"


def _named(parameter: Parameter, name: str | None = None) -> Argument:
    return Argument(parameter.kind, name or parameter.name, parameter.count)


def _placed(parameter: Parameter) -> Argument:
    return Argument(parameter.kind, None, parameter.count, parameter.variadic)


def calls(overload: Overload) -> Iterator[Call]:
    """The calls for one overload: what is required by keyword; with each optional argument by keyword; with NumPy's
    names; each number of arguments by position.
    """
    required = [each for each in overload if each.required and not each.variadic]
    variadic = [each for each in overload if each.variadic]
    if not variadic:
        whole = tuple(_named(each) for each in required)
        yield whole
        yield from ((*whole, _named(each)) for each in overload if not each.required)
        for each in overload:
            if each.name in _NUMPY_NAMES:
                others = [_named(other) for other in required if other is not each]
                yield (*others, _named(each, _NUMPY_NAMES[each.name]))
    positional = [each for each in overload if not each.keyword_only and not each.variadic]
    last = [_named(each) for each in required if each.keyword_only]
    for count in range(sum(each.required for each in positional), len(positional) + 1):
        listed = [*positional[:count], *(variadic if count == len(positional) else [])]
        yield (*map(_placed, listed), *last)


def numbers_for_tensors(overload: Overload) -> Iterator[Call]:
    """The calls with a number in place of a tensor, and with numbers in place of all of them."""
    required = [each for each in overload if each.required and not each.variadic and not each.keyword_only]
    tensors = [position for position, each in enumerate(required) if each.kind == "tensor"]
    choices = [(position,) for position in tensors] + ([tuple(tensors)] if len(tensors) > 1 else [])
    for number in ("int", "float"):
        for chosen in choices:
            yield tuple(
                Argument(number) if position in chosen else _placed(each) for position, each in enumerate(required)
            )


def bound(T: Any, function: Callable[..., Any], call: Call, method: bool) -> bool:
    """Whether a call got past the binding of its arguments: it gave a result, or an error about their values."""
    listed = [T.ones(2, 2)] if method else []
    for each in call:
        if each.name is None:
            listed += each.made(T) if each.spread else (each.made(T),)
    named = {each.name: each.made(T) for each in call if each.name is not None}
    try:
        return function(*listed, **named) is not NotImplemented
    except TypeError:
        return False
    except Exception:
        return True
