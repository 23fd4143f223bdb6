"""Numbers that remember how they were computed, so that others can be computed in the same way later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._codegen.expr import Untraceable
from ..._core.process.caller import GENERATED
from ..._core.process.reproducibility import REPRODUCIBILITY, power


class Formula:
    """A number with its expression in Python. What is decided by comparing it is noted, as a condition of the rest."""

    __slots__ = ("conditions", "text", "value")

    def __init__(self, text: str, value: float, conditions: list[str]) -> None:
        self.text = text
        self.value = value
        self.conditions = conditions

    def _combined(self, operator: str, other: Any, swapped: bool = False) -> Formula:
        if type(other) not in (int, float, Formula):
            raise Untraceable(f"a number and a {type(other).__name__}")
        left, right = (other, self) if swapped else (self, other)
        text = f"({_text(left)} {operator} {_text(right)})"
        if operator == "**":  # without a call where no level asks for one: optimizers compute three powers a step
            text = f"({text} if levels.function is None else power({_text(left)}, {_text(right)}))"
        return Formula(text, _OPERATORS[operator](_value(left), _value(right)), self.conditions)

    def _compared(self, operator: str, other: Any) -> bool:
        found = self._combined(operator, other)
        self.conditions.append(f"{found.text} is {bool(found.value)}")
        return bool(found.value)

    def __add__(self, other: Any) -> Formula:
        return self._combined("+", other)

    def __radd__(self, other: Any) -> Formula:
        return self._combined("+", other, True)

    def __sub__(self, other: Any) -> Formula:
        return self._combined("-", other)

    def __rsub__(self, other: Any) -> Formula:
        return self._combined("-", other, True)

    def __mul__(self, other: Any) -> Formula:
        return self._combined("*", other)

    def __rmul__(self, other: Any) -> Formula:
        return self._combined("*", other, True)

    def __truediv__(self, other: Any) -> Formula:
        return self._combined("/", other)

    def __rtruediv__(self, other: Any) -> Formula:
        return self._combined("/", other, True)

    def __pow__(self, other: Any) -> Formula:
        return self._combined("**", other)

    def __rpow__(self, other: Any) -> Formula:
        return self._combined("**", other, True)

    def __neg__(self) -> Formula:
        return Formula(f"(-{self.text})", -self.value, self.conditions)

    def __lt__(self, other: Any) -> bool:
        return self._compared("<", other)

    def __le__(self, other: Any) -> bool:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> bool:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> bool:
        return self._compared(">=", other)

    def __eq__(self, other: object) -> bool:
        return self._compared("==", other)

    def __ne__(self, other: object) -> bool:
        return self._compared("!=", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self._compared("!=", 0)

    def __float__(self) -> float:
        raise Untraceable("a number that is handed to a function")


_OPERATORS: dict[str, Callable[[float, float], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "**": power,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def _text(number: Any) -> str:
    if type(number) is Formula:
        return number.text
    text = repr(number)
    return f"float({text!r})" if "n" in text else f"({text})"  # inf and nan have no literals


def _value(number: Any) -> Any:
    return number.value if type(number) is Formula else number


def function_of(
    names: Sequence[str], numbers: Sequence[Any], conditions: Sequence[str]
) -> Callable[..., tuple[float, ...] | None]:
    """What computes numbers anew from the variables `names`; it returns None where a condition does not hold."""
    result = f"({''.join([f'float({_text(each)}), ' for each in numbers])})"
    if conditions:
        result = f"{result} if {' and '.join(dict.fromkeys(conditions))} else None"
    text = f"lambda {', '.join(names)}: {result}"
    made: Callable[..., tuple[float, ...] | None] = eval(
        compile(text, f"{GENERATED}numbers of a rule>", "eval"), {"power": power, "levels": REPRODUCIBILITY}
    )
    return made
