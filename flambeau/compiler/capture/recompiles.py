"""Why a call is none of the recorded ones: which value differs, from what to what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

from ..._core.tensor import Tensor
from .layout import Layout
from .settings import NAMES

_LINES_AT_ONCE = 50
_MOST_NEW = 8
"""Something that has so many new values in a row has another one in every call."""
OTHER_ELEMENTS = "it found other elements where Python looks at them"
_LONGEST = 80
_DEEPEST, _MOST_ITEMS = 3, 8
_LAYOUT = re.compile(r"(c\d+)\.differs\w*\((\w+)\)")
_LENGTH = re.compile(r"len\((\w+)\) != (\d+)")
_EMPTY = re.compile(r"if (\w+) or type\(\1\)")
_SETTINGS = re.compile(r"if settings\(\) != (\w+)")
_VALUE = re.compile(r"if (\w+) is not (c\d+) and \(type")
_NUMBER = re.compile(r"if repr\((\w+)\) != (c\d+)")
_OBJECT = re.compile(r"if (.+?) is not (None|True|False|c\d+):")
_ITEMS = re.compile(r"^([\w, ]+), = (\w+)(\.values\(\))?$")
_NUMERAL = re.compile(r"-?\d+(\.\d*)?(e[-+]?\d+)?")
_PLACE = re.compile(r"^(\w+) = (.+)$")


def why_missed(program: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """One sentence about the first check of a program that a call does not pass."""
    if vars(program)["missed"][0] == id(args):
        return OTHER_ELEMENTS
    checks: Sequence[str] = vars(program)["checks"]
    scope = {**program.__globals__, "args": args, "kwargs": kwargs, "FirstMiss": _FirstMiss}
    lines = [line.replace("return MISS", f"raise FirstMiss({number})") for number, line in enumerate(checks)]
    try:
        for start in range(0, len(lines), _LINES_AT_ONCE):  # most calls differ in the first ones, their arguments
            exec("\n".join(lines[start : start + _LINES_AT_ONCE]), scope)
    except _FirstMiss as miss:
        return _sentence(checks[miss.number], _Origins(checks[: miss.number], scope), scope)
    return OTHER_ELEMENTS


class Values:
    """The values for which calls were none of the recorded ones: one that is another each time is found out.

    The first other value of something has a program at once, if it is no number. Numbers and later values have to come
    twice: a counter never does, and to record a call takes as long as some 20 plain ones.
    """

    def __init__(self) -> None:
        self._met: dict[str, set[str]] = {}
        """The values that were found, by where they were."""
        self._once: dict[str, int] = {}
        """How many values in a row have come for the first time."""

    def waits(self, reason: str) -> bool:
        """Whether a call is not to be recorded: a value is another one, and has not come before."""
        before, _, now = reason.partition(", now it is ")
        place, _, was = before.partition(" was ")
        if not now or now.startswith("<") or was.startswith("<"):
            return False
        values = self._met.setdefault(place, {was})
        is_new, is_first = now not in values, len(values) == 1
        values.add(now)
        self._once[place] = self._once.get(place, 0) + 1 if is_new else 0
        is_size = "args[" in place and now.lstrip("-").isdigit()  # the next program is for all of them
        return is_new and (not is_first or (_NUMERAL.fullmatch(now) is not None and not is_size))

    def given_up(self, reason: str) -> str | None:
        """Why no further call is recorded; None: some may be."""
        place = reason.partition(" was ")[0]
        times = self._once.get(place, 0)
        return f"{place} has another value in every call ({times} values)" if times >= _MOST_NEW else None


class _FirstMiss(Exception):
    """The first check that does not hold."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Origins:
    """Where the variables of checks come from, in words of the user's."""

    def __init__(self, lines: Sequence[str], scope: dict[str, Any]) -> None:
        self._known: dict[str, str] = {}
        self._scope = scope
        for line in lines:
            if (items := _ITEMS.match(line)) is not None:
                names = items[1].split(", ")
                keys = range(len(names)) if items[3] is None else list(scope[items[2]])
                for key, name in zip(keys, names, strict=True):
                    self._known[name] = f"{self.of(items[2])}[{key!r}]"
            elif (place := _PLACE.match(line)) is not None:
                self._known[place[1]] = self.of(place[2])

    def of(self, expression: str) -> str:
        """An expression with names that say more."""
        text = re.sub(r"\b[cp]\d+\b", lambda match: self._known.get(match[0]) or self._told(match[0]), expression)
        return text.replace(".cell_contents", "")

    def _told(self, name: str) -> str:
        value = self._scope.get(name)
        if isinstance(value, CellType):
            return self._variable(value)
        if isinstance(value, dict):
            return str(value.get("__name__", "attributes"))
        return getattr(value, "__qualname__", type(value).__qualname__)

    def _variable(self, cell: CellType) -> str:
        """The name of the variable that a cell of a closure is."""
        functions = [each for each in self._scope.values() if isinstance(each, FunctionType) and each.__closure__]
        for each in functions:
            for name, known in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True):
                if known is cell:
                    return name
        return "a variable"


def _sentence(check: str, origins: _Origins, scope: dict[str, Any]) -> str:
    if (known := _SETTINGS.match(check)) is not None:
        pairs = zip(NAMES, scope[known[1]], scope["settings"](), strict=True)
        return ", ".join([f"{name} was {one!r}, now it is {other!r}" for name, one, other in pairs if one != other])
    if (length := _LENGTH.search(check)) is not None and len(scope[length[1]]) != int(length[2]):
        return f"{origins.of(length[1])} had {length[2]} items, now it has {len(scope[length[1]])}"
    if (empty := _EMPTY.match(check)) is not None:
        return f"{origins.of(empty[1])} was empty, now it is {_shown(scope[empty[1]])}"
    if (layout := _LAYOUT.search(check)) is not None:
        return f"{origins.of(layout[2])} was {scope[layout[1]]}, now it is {_shown(scope[layout[2]])}"
    if (value := _VALUE.match(check)) is not None:
        return f"{origins.of(value[1])} was {_shown(scope[value[2]])}, now it is {_shown(scope[value[1]])}"
    if (number := _NUMBER.match(check)) is not None:
        return f"{origins.of(number[1])} was {scope[number[2]]}, now it is {_shown(scope[number[1]])}"
    if (thing := _OBJECT.match(check)) is not None:
        now = eval(thing[1], scope)
        return f"{origins.of(thing[1])} was {_shown(eval(thing[2], scope))}, now it is {_shown(now)}"
    return f"this holds now: {origins.of(check.removeprefix('if ').partition(': return')[0])}"


def _shown(value: Any) -> str:
    text = _in_words(value, _DEEPEST)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _in_words(value: Any, depth: int) -> str:
    """What is said of a value: of tensors what they look like to ops, not their elements, in containers too."""
    if isinstance(value, Tensor):
        return str(Layout(value))
    kind = type(value)
    if kind in (list, tuple) and depth:
        parts = ", ".join([_in_words(each, depth - 1) for each in value[:_MOST_ITEMS]])
        more = ", ..." * (len(value) > _MOST_ITEMS) or "," * (kind is tuple and len(value) == 1)
        return f"[{parts}{more}]" if kind is list else f"({parts}{more})"
    if kind is dict and depth:
        pairs = itertools.islice(value.items(), _MOST_ITEMS)
        shown = [f"{key!r}: {_in_words(each, depth - 1)}" for key, each in pairs]
        return f"{{{', '.join(shown)}{', ...' * (len(value) > _MOST_ITEMS)}}}"
    if kind in (list, tuple, dict) or any(map(_has_tensors, getattr(value, "__dict__", {}).values())):
        return f"<{kind.__name__}>"
    return repr(value)


def _has_tensors(value: Any) -> bool:
    """Whether an attribute is a tensor, or holds some: what an object says of itself may be their elements."""
    return isinstance(value, (Tensor, list, tuple, dict)) or hasattr(value, "__dict__")
