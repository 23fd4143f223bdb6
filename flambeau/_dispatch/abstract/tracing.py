"""The abstract tensor: functions of tensors become programs for one element.

Formulas of derivatives and update rules of optimizers are written on tensors. Run once with `AbstractTensor`s in their
place, they write down each step as NumPy's kernels would take it; what comes out is a `Program`, as of the bodies of
ops. A function that does what has no place in one, such as to look at an element, raises `Untraceable`, and runs on
tensors as it stands: a trace changes nothing.

Two things differ between formulas and rules. A number in a formula is part of the program; in a rule it is an input, so
that a scheduler may change the learning rate without a new kernel. And a rule is traced only as far as its kernel
rounds as the ops themselves would: in half precision after each op, and without functions of which there are two
versions.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ..._codegen.expr import Expr, Program, Trace, Untraceable
from ..elementwise import Elementwise
from .combinations import interpolated, scaled_product, scaled_quotient
from .formulas import Formula, function_of

_WIDE = {"float32": "float32", "float64": "float64", "float16": "float32", "bfloat16": "float32"}
"""The type in which elements of a dtype are computed with."""


STEP = object()
"""In place of the number of a rule: one that only the device knows, and that follows the tensors as an input."""


class Recording:
    """The steps of a function on tensors of one dtype."""

    def __init__(self, trace: Trace, type_name: str, kind: Any, rounding: str | None, as_inputs: bool) -> None:
        self.trace = trace
        self.steps = trace.steps
        self.type = type_name
        self.kind = kind
        self.rounding = rounding
        """The step that rounds to half precision, if that is what the tensors have."""
        self.as_inputs = as_inputs
        """Whether numbers are inputs, which follow the tensors; else they are part of the program."""
        self.tensors: list[AbstractTensor] = []
        self.numbers: list[Any] = []

    def operand(self, value: Any, rounded: bool = False) -> int:
        """The step that stands for a tensor or a number; one of half precision on request."""
        if type(value) is AbstractTensor:
            return value.number
        if type(value) is not float and type(value) is not int and type(value) is not Formula:
            raise Untraceable(f"an operand of type {type(value).__name__}")
        if not self.as_inputs:
            return self.trace.constant(value, np.dtype(self.type)).number
        steps = self.steps
        steps.append(("input", self.type, len(self.tensors) + len(self.numbers)))
        self.numbers.append(value if type(value) is Formula else float(value))
        return self.rounded(len(steps) - 1) if rounded and self.rounding is not None else len(steps) - 1

    def apply(self, name: str, *operands: int) -> int:
        """A step that computes. That an earlier one may be the same is for the compiler to see."""
        steps = self.steps
        steps.append((name, self.type, *operands))
        return len(steps) - 1

    def rounded(self, number: int) -> int:
        """What a tensor of half precision keeps of a result."""
        return number if self.rounding is None else self.apply(self.rounding, number)


def _arithmetic(step: str, apply: Callable[..., Any], exact: bool = False, swapped: bool = False) -> Callable[..., Any]:
    """An operator of two operands; `exact`: numbers beside tensors of half precision are not rounded like these."""

    def method(self: AbstractTensor, other: Any) -> AbstractTensor:
        recording = self.recording
        if not recording.as_inputs:  # in a formula there may be other types, which are for NumPy's rules
            return self.traced(apply, (other, self) if swapped else (self, other))
        second = other.number if type(other) is AbstractTensor else recording.operand(other, rounded=not exact)
        steps = recording.steps
        steps.append(
            (step, recording.type, second, self.number) if swapped else (step, recording.type, self.number, second)
        )
        if recording.rounding is None:
            return AbstractTensor(recording, len(steps) - 1)
        return AbstractTensor(recording, recording.rounded(len(steps) - 1))

    return method


def _unary(name: str, apply: Callable[..., Any]) -> Callable[[AbstractTensor], AbstractTensor]:
    def method(self: AbstractTensor) -> AbstractTensor:
        recording = self.recording
        if not recording.as_inputs:
            return self.traced(apply, (self,))
        return AbstractTensor(recording, recording.rounded(recording.apply(name, self.number)))

    return method


def _by_numpy(apply: Callable[..., Any], swapped: bool = False, in_rules: bool = False) -> Callable[..., Any]:
    """An operator whose result may have another type, in formulas alone or `in_rules` too."""

    def method(self: AbstractTensor, *others: Any) -> AbstractTensor:
        if not in_rules:
            self.check_formula(apply.__name__)
        return self.traced(apply, (*others, self) if swapped else (self, *others))

    return method


class AbstractTensor:
    """A tensor that does not exist: the step that has computed its element so far.

    It has the operators and the elementwise methods of tensors.
    """

    __slots__ = ("number", "recording")
    is_sparse = False

    def __init__(self, recording: Recording, number: int) -> None:
        self.recording = recording
        self.number = number

    # ----- any kernel on arrays ------------------------------------------------------------------------------------

    def traced(self, kernel: Callable[..., Any], args: Sequence[Any]) -> AbstractTensor:
        """What a kernel on arrays makes of abstract tensors."""
        recording = self.recording
        given = [each.expression() if type(each) is AbstractTensor else each for each in args]
        result = kernel(*given)
        if not isinstance(result, Expr):
            raise Untraceable("a result that is no expression")
        return AbstractTensor(recording, result.number)

    def expression(self) -> Expr:
        """The step as NumPy's functions take it."""
        trace = self.recording.trace
        return Expr(trace, self.number, np.dtype(trace.steps[self.number][1]))

    def as_one(self, body: Callable[..., AbstractTensor], *operands: Any) -> AbstractTensor:
        """An op of several steps, of which the last alone is rounded."""
        recording = self.recording
        given = [
            each if type(each) is AbstractTensor else AbstractTensor(recording, recording.operand(each))
            for each in operands
        ]
        rounding = recording.rounding
        if rounding is None:
            return body(self, *given)
        recording.rounding = None
        try:
            result = body(self, *given)
        finally:
            recording.rounding = rounding
        return AbstractTensor(recording, recording.rounded(result.number))

    def check_formula(self, name: str) -> None:
        """Refuse, in a rule, what is computed in two ways."""
        if self.recording.as_inputs:
            raise Untraceable(name)

    # ----- arithmetic ----------------------------------------------------------------------------------------------

    mul = __mul__ = __rmul__ = _arithmetic("multiply", operator.mul, exact=True)
    div = __truediv__ = _arithmetic("divide", operator.truediv, exact=True)
    __rtruediv__ = _arithmetic("divide", operator.truediv, exact=True, swapped=True)
    __add__ = __radd__ = _arithmetic("add", operator.add)
    __sub__ = _arithmetic("subtract", operator.sub)
    __rsub__ = _arithmetic("subtract", operator.sub, swapped=True)
    sqrt = _unary("sqrt", np.sqrt)
    neg = __neg__ = _unary("negative", np.negative)
    abs = _unary("absolute", np.absolute)

    def __rpow__(self, base: Any) -> AbstractTensor:
        recording = self.recording
        if not recording.as_inputs:
            return NotImplemented
        return AbstractTensor(recording, recording.apply("power", recording.operand(base), self.number))

    def __pow__(self, exponent: Any) -> AbstractTensor:
        if not self.recording.as_inputs:
            return NotImplemented
        if exponent != 0.5:
            raise Untraceable(f"a power of {exponent}")
        root: AbstractTensor = self.sqrt()
        return root

    def maximum(self, other: AbstractTensor) -> AbstractTensor:
        return self._extreme("maximum", other)

    def minimum(self, other: AbstractTensor) -> AbstractTensor:
        return self._extreme("minimum", other)

    def _extreme(self, name: str, other: AbstractTensor) -> AbstractTensor:
        if type(other) is not AbstractTensor:
            raise Untraceable(f"{name} of a tensor and a number")
        return AbstractTensor(self.recording, self.recording.apply(name, self.number, other.number))

    def add(self, other: Any, *, alpha: Any = 1) -> AbstractTensor:
        sum: AbstractTensor = self + (other if type(alpha) is int and alpha == 1 else self._scaled(other, alpha))
        return sum

    def sub(self, other: Any, *, alpha: Any = 1) -> AbstractTensor:
        difference: AbstractTensor = self - (other if type(alpha) is int and alpha == 1 else self._scaled(other, alpha))
        return difference

    def _scaled(self, other: Any, alpha: Any) -> AbstractTensor:
        if type(other) is not AbstractTensor:
            raise Untraceable("a multiple of a number")
        recording = self.recording
        factor = recording.operand(alpha, rounded=True)
        return AbstractTensor(recording, recording.rounded(recording.apply("multiply", other.number, factor)))

    def lerp(self, end: AbstractTensor, weight: Any) -> AbstractTensor:
        if type(weight) is not float:
            raise Untraceable("weights that are no number")
        near = abs(weight) < 0.5
        return self.as_one(lambda start, end, part: interpolated(start, end, part, near), end, weight)

    def addcmul(self, tensor1: AbstractTensor, tensor2: AbstractTensor, *, value: Any = 1) -> AbstractTensor:
        return self.as_one(_plus_product, tensor1, tensor2, value)

    def addcdiv(self, tensor1: AbstractTensor, tensor2: AbstractTensor, *, value: Any = 1) -> AbstractTensor:
        return self.as_one(_plus_quotient, tensor1, tensor2, value)

    def clamp(self, min: Any = None, max: Any = None) -> AbstractTensor:
        recording = self.recording
        if recording.rounding is not None or type(min) is AbstractTensor or type(max) is AbstractTensor:
            raise Untraceable("bounds beside half precision, or bounds that are no numbers")
        result = self.number
        if min is not None:
            result = recording.apply("maximum", result, recording.operand(min))
        if max is not None:
            result = recording.apply("minimum", result, recording.operand(max))
        return AbstractTensor(recording, result)

    def clamp_min(self, min: Any) -> AbstractTensor:
        return self.clamp(min)

    def clamp_max(self, max: Any) -> AbstractTensor:
        return self.clamp(None, max)

    # ----- copies and changes --------------------------------------------------------------------------------------

    def clone(self) -> AbstractTensor:
        return AbstractTensor(self.recording, self.number)

    def detach(self) -> AbstractTensor:
        return self

    def copy_(self, source: Any) -> AbstractTensor:
        self.number = self.recording.operand(source, rounded=True)
        return self

    def fill_(self, value: Any) -> AbstractTensor:
        return self.copy_(value)

    def zero_(self) -> AbstractTensor:
        return self.fill_(0)

    # ----- choices --------------------------------------------------------------------------------------------------

    __eq__ = _by_numpy(operator.eq, in_rules=True)
    __gt__ = _by_numpy(operator.gt, in_rules=True)
    __hash__ = object.__hash__

    def where(self, condition: Any, other: Any) -> AbstractTensor:
        """Itself where the condition holds."""
        return self.traced(np.where, (condition, self, other))

    # ----- in formulas alone ---------------------------------------------------------------------------------------

    @property
    def _kind(self) -> Any:
        return self.recording.kind

    @property
    def dtype(self) -> Any:
        """The dtype of the tensor that it stands for."""
        self.check_formula("dtype")
        return self.recording.kind.dtype

    def is_complex(self) -> bool:
        """Whether it is complex: such formulas are not traced."""
        return False

    def conj(self) -> AbstractTensor:
        """Itself: it is real."""
        return self

    conjugate = conj

    def masked_fill(self, mask: Any, value: Any) -> AbstractTensor:
        """Itself where the mask does not hold."""
        self.check_formula("masked_fill")
        return self.traced(np.where, (mask, value, self))

    __and__ = _by_numpy(operator.and_)
    __rand__ = _by_numpy(operator.and_, swapped=True)
    __or__ = _by_numpy(operator.or_)
    __ror__ = _by_numpy(operator.or_, swapped=True)
    __xor__ = _by_numpy(operator.xor)
    __rxor__ = _by_numpy(operator.xor, swapped=True)
    __invert__ = _by_numpy(operator.invert)
    __lt__ = _by_numpy(operator.lt)
    __le__ = _by_numpy(operator.le)
    __ge__ = _by_numpy(operator.ge)
    __ne__ = _by_numpy(operator.ne)

    def __getattr__(self, name: str) -> Any:
        self.check_formula(name)
        op = getattr(getattr(sys.modules["flambeau"], name, None), "op", None)
        if not isinstance(op, Elementwise):
            raise AttributeError(name)
        return lambda *others: self.traced(op.body, (self, *others))

    def __bool__(self) -> bool:
        raise Untraceable("a branch that depends on an element")

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        op = getattr(function, "op", None)
        if not isinstance(op, Elementwise) or kwargs:
            raise Untraceable(f"{function} is not elementwise")
        first = next(each for each in args if type(each) is AbstractTensor)
        first.check_formula(op.name)
        return first.traced(op.body, args)


def _plus_product(own: Any, one: Any, two: Any, factor: Any) -> Any:
    return own + scaled_product(one, two, factor)


def _plus_quotient(own: Any, one: Any, two: Any, factor: Any) -> Any:
    return own + scaled_quotient(one, two, factor)


def _in_place(method: Callable[..., AbstractTensor]) -> Callable[..., AbstractTensor]:
    def change(self: AbstractTensor, *args: Any, **options: Any) -> AbstractTensor:
        self.number = method(self, *args, **options).number
        return self

    return change


for _name in (
    "add", "sub", "mul", "div", "sqrt", "neg", "abs", "maximum", "minimum", "clamp", "clamp_min", "clamp_max", "lerp",
    "addcmul", "addcdiv",
):  # fmt: skip
    setattr(AbstractTensor, f"{_name}_", _in_place(getattr(AbstractTensor, _name)))


def of_expressions(expressions: Sequence[Expr], kind: Any) -> list[AbstractTensor]:
    """The operands of a formula, of which `expressions` are the elements, as tensors of `kind`."""
    recording = Recording(expressions[0].trace, expressions[0].dtype.name, kind, None, as_inputs=False)
    return [AbstractTensor(recording, each.number) for each in expressions]


def traced_rule(
    rule: Callable[..., Any], number: Any, dtype: str, tensors: int
) -> tuple[Program, tuple[int, ...], list[Any]]:
    """The program of an update rule, the positions of the tensors that it changes, and the numbers of this update.

    A rule that refers to nothing but constants, and rules of such, is traced once. If it is told of a step, its numbers
    follow from that.
    """
    stepping = type(number) is float
    known = _constants_of(rule) if number is None or number is STEP or type(number) is bool or stepping else None
    if known is None:
        return _traced(rule, number, dtype, tensors)
    key = (*known, float if stepping else number, dtype, tensors)
    found = _TRACED.get(key)
    if found is None:
        if len(_TRACED) >= _MOST_TRACED:
            _TRACED.clear()
        traced = _traced(rule, number, dtype, tensors)
        # Whether it is worth while to find out how the numbers of a step are computed, the next step will tell.
        _TRACED[key] = _MET if stepping else traced
        return traced
    if not stepping:
        kept: _Traced = found
        return kept
    numbers = None if found is _MET or found is _ANEW else found[2](number)
    if numbers is None and found is not _ANEW:  # or the rule takes another way at this step
        try:
            found = _TRACED[key] = _traced_by_step(rule, number, dtype, tensors)
            numbers = found[2](number)
        except Exception:  # whatever it did with its number: with a number itself it may
            _TRACED[key] = _ANEW
    return _traced(rule, number, dtype, tensors) if numbers is None else (found[0], found[1], list(numbers))


def _traced_by_step(rule: Callable[..., Any], number: float, dtype: str, tensors: int) -> _Traced:
    """What `_traced` gives, but for its numbers what computes them from the step, or None where branches differ."""
    conditions: list[str] = []
    program, changed, numbers = _traced(rule, Formula("step", number, conditions), dtype, tensors)
    return program, changed, function_of(("step",), numbers, conditions)


_Traced = tuple[Program, tuple[int, ...], Any]
_TRACED: dict[Any, Any] = {}
_MET, _ANEW = object(), object()
"""In place of the trace of a rule that is told of a step: there was one; and, there must be one for each step."""
_MOST_TRACED = 256
_CONSTANTS = frozenset((bool, int, float, str, type(None)))


def _constants_of(rule: Any) -> tuple[Any, ...] | None:
    """What tells a function from others, if all that it refers to are constants; else None."""
    contents = [cell.cell_contents for cell in getattr(rule, "__closure__", None) or ()]
    inner = [_constants_of(each) for each in contents if type(each) is FunctionType]
    if None in inner:
        return None
    cells = [each for each in contents if type(each) is not FunctionType]
    types = [type(each) for each in cells]
    defaults = getattr(rule, "__defaults__", ()) or ()
    if not hasattr(rule, "__code__") or not _CONSTANTS.issuperset((*types, *map(type, defaults))):
        return None
    return rule.__code__, *inner, *cells, *types, *defaults


def _traced(
    rule: Callable[..., Any], number: Any, dtype: str, tensors: int
) -> tuple[Program, tuple[int, ...], list[Any]]:
    wide = _WIDE.get(dtype)
    if wide is None:
        raise Untraceable(f"tensors of {dtype}")
    trace = Trace()
    recording = Recording(trace, wide, None, None if wide == dtype else f"round_{dtype}", as_inputs=True)
    unknown = number is STEP
    if unknown and wide != dtype:
        raise Untraceable(f"steps, which are of float32, beside tensors of {dtype}")
    inputs = [AbstractTensor(recording, trace.number("input", wide, each)) for each in range(tensors + unknown)]
    recording.tensors = list(inputs)  # numbers follow them
    rule(inputs.pop() if unknown else number, *inputs)
    changed = tuple([position for position, each in enumerate(inputs) if each.number != position])
    results = tuple([recording.tensors[each].number for each in changed])
    return Program(tuple(trace.steps), results), changed, recording.numbers
