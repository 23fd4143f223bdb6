"""Update rules of optimizers, traced into programs for one element.

A rule such as `def rule(step, param, grad): param.add_(grad, alpha=-lr)` is written on tensors. It runs with `Traced`
objects in their place, which write down each step as NumPy's kernels would take it, roundings included. What comes out
is a `Program`, as of the bodies of ops, and the numbers that the rule used: a learning rate is an input of the program
and no part of it, so that a scheduler may change it without a new kernel.

A rule is traced anew for each update, because its branches may depend on the step. One that does what has no place
here, such as to look at an element, raises `Untraceable`, and runs on tensors as before: a trace changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .expr import Program, Step, Untraceable

_WIDE = {"float32": "float32", "float64": "float64", "float16": "float32", "bfloat16": "float32"}
"""The type in which elements of a dtype are computed with."""


class Recording:
    """The steps of a rule on tensors of one dtype, and its numbers."""

    def __init__(self, dtype: str, tensors: int) -> None:
        self.type = _WIDE[dtype]
        self.rounding = f"round_{dtype}" if self.type != dtype else None
        self.steps: list[Step] = [("input", self.type, position) for position in range(tensors)]
        self.tensors = [Traced(self, number) for number in range(tensors)]
        self.numbers: list[float] = []

    def operand(self, value: Any, rounded: bool = False) -> int:
        """The step that stands for a tensor or a number; one of half precision on request."""
        if type(value) is Traced:
            return value.number
        if type(value) is not float and type(value) is not int:
            raise Untraceable(f"an operand of type {type(value).__name__}")
        self.steps.append(("input", self.type, len(self.tensors) + len(self.numbers)))
        self.numbers.append(float(value))
        return self.rounded(len(self.steps) - 1) if rounded else len(self.steps) - 1

    def apply(self, name: str, *operands: int) -> int:
        """A step that computes."""
        self.steps.append((name, self.type, *operands))
        return len(self.steps) - 1

    def rounded(self, number: int) -> int:
        """What a tensor of half precision keeps of a result."""
        return number if self.rounding is None else self.apply(self.rounding, number)

    def program(self) -> tuple[Program, tuple[int, ...]]:
        """What was written down, and which of the tensors it changes: the results are theirs."""
        changed = tuple([position for position, each in enumerate(self.tensors) if each.number != position])
        return Program(tuple(self.steps), tuple([self.tensors[each].number for each in changed])), changed


def _binary(name: str, exact: bool = False) -> Callable[[Traced, Any], Traced]:
    """An op of two operands; `exact`: numbers beside tensors of half precision are not rounded like these."""

    def method(self: Traced, other: Any) -> Traced:
        recording = self.recording
        second = recording.operand(other, rounded=not exact)
        return Traced(recording, recording.rounded(recording.apply(name, self.number, second)))

    return method


def _reversed(name: str, exact: bool = False) -> Callable[[Traced, Any], Traced]:
    def method(self: Traced, other: Any) -> Traced:
        recording = self.recording
        first = recording.operand(other, rounded=not exact)
        return Traced(recording, recording.rounded(recording.apply(name, first, self.number)))

    return method


def _unary(name: str) -> Callable[[Traced], Traced]:
    def method(self: Traced) -> Traced:
        recording = self.recording
        return Traced(recording, recording.rounded(recording.apply(name, self.number)))

    return method


class Traced:
    """A tensor that does not exist: the step that has computed its element so far."""

    __slots__ = ("number", "recording")
    is_sparse = False

    def __init__(self, recording: Recording, number: int) -> None:
        self.recording = recording
        self.number = number

    mul = __mul__ = __rmul__ = _binary("multiply", exact=True)
    div = __truediv__ = _binary("divide", exact=True)
    __rtruediv__ = _reversed("divide", exact=True)
    __add__ = __radd__ = _binary("add")
    __sub__ = _binary("subtract")
    __rsub__ = _reversed("subtract")
    sqrt = _unary("sqrt")
    neg = __neg__ = _unary("negative")
    abs = _unary("absolute")

    def maximum(self, other: Traced) -> Traced:
        return self._extreme("maximum", other)

    def minimum(self, other: Traced) -> Traced:
        return self._extreme("minimum", other)

    def _extreme(self, name: str, other: Traced) -> Traced:
        if type(other) is not Traced:
            raise Untraceable(f"{name} of a tensor and a number")
        return Traced(self.recording, self.recording.apply(name, self.number, other.number))

    def add(self, other: Any, *, alpha: Any = 1) -> Traced:
        return self + (other if type(alpha) is int and alpha == 1 else self._scaled(other, alpha))

    def sub(self, other: Any, *, alpha: Any = 1) -> Traced:
        return self - (other if type(alpha) is int and alpha == 1 else self._scaled(other, alpha))

    def _scaled(self, other: Any, alpha: Any) -> Traced:
        if type(other) is not Traced:
            raise Untraceable("a multiple of a number")
        recording = self.recording
        factor = recording.operand(alpha, rounded=True)
        return Traced(recording, recording.rounded(recording.apply("multiply", other.number, factor)))

    def lerp(self, end: Traced, weight: Any) -> Traced:
        recording = self.recording
        if type(weight) is not float:
            raise Untraceable("weights that are no number")
        goal, part = recording.operand(end), recording.operand(weight)
        distance = recording.apply("subtract", goal, self.number)
        if abs(weight) < 0.5:
            result = recording.apply("add", self.number, recording.apply("multiply", distance, part))
        else:
            left = recording.apply("subtract", recording.operand(1), part)
            result = recording.apply("subtract", goal, recording.apply("multiply", distance, left))
        return Traced(recording, recording.rounded(result))

    def addcmul(self, tensor1: Traced, tensor2: Traced, *, value: Any = 1) -> Traced:
        return self._with_scaled("multiply", tensor1, tensor2, value)

    def addcdiv(self, tensor1: Traced, tensor2: Traced, *, value: Any = 1) -> Traced:
        return self._with_scaled("divide", tensor1, tensor2, value)

    def _with_scaled(self, name: str, one: Traced, two: Traced, value: Any) -> Traced:
        recording = self.recording
        scaled = recording.apply("multiply", recording.operand(one), recording.operand(value))
        combined = recording.apply(name, scaled, recording.operand(two))
        return Traced(recording, recording.rounded(recording.apply("add", self.number, combined)))

    def clamp(self, min: Any = None, max: Any = None) -> Traced:
        recording = self.recording
        if recording.rounding is not None or type(min) is Traced or type(max) is Traced:
            raise Untraceable("bounds beside half precision, or bounds that are no numbers")
        result = self.number
        if min is not None:
            result = recording.apply("maximum", result, recording.operand(min))
        if max is not None:
            result = recording.apply("minimum", result, recording.operand(max))
        return Traced(recording, result)

    def clamp_min(self, min: Any) -> Traced:
        return self.clamp(min)

    def clamp_max(self, max: Any) -> Traced:
        return self.clamp(None, max)

    def clone(self) -> Traced:
        return Traced(self.recording, self.number)

    def detach(self) -> Traced:
        return self

    def copy_(self, source: Traced) -> Traced:
        self.number = self.recording.operand(source, rounded=True)
        return self

    def fill_(self, value: Any) -> Traced:
        return self.copy_(value)

    def zero_(self) -> Traced:
        return self.fill_(0)

    def __getattr__(self, name: str) -> NoReturn:
        raise Untraceable(name)

    def __bool__(self) -> NoReturn:
        raise Untraceable("a branch that depends on an element")

    def __eq__(self, other: object) -> NoReturn:
        raise Untraceable("a comparison")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # type: ignore[assignment]  # nor can it be compared


def _in_place(method: Callable[..., Traced]) -> Callable[..., Traced]:
    def change(self: Traced, *args: Any, **options: Any) -> Traced:
        self.number = method(self, *args, **options).number
        return self

    return change


for _name in (
    "add", "sub", "mul", "div", "sqrt", "neg", "abs", "maximum", "minimum", "clamp", "clamp_min", "clamp_max", "lerp",
    "addcmul", "addcdiv",
):  # fmt: skip
    setattr(Traced, f"{_name}_", _in_place(getattr(Traced, _name)))


def traced(
    rule: Callable[..., Any], number: Any, dtype: str, tensors: int
) -> tuple[Program, tuple[int, ...], list[float]]:
    """The program of a rule, the positions of the tensors that it changes, and the numbers of this update."""
    recording = Recording(dtype, tensors)
    rule(number, *recording.tensors)
    program, changed = recording.program()
    return program, changed, recording.numbers
