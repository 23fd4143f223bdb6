"""Expressions: NumPy bodies of elementwise ops, traced into programs for one element.

A body such as `lambda x: x / (1 + np.exp(-x))` runs once with `Expr` objects in place of arrays. They take part in
NumPy's protocols, and write down each step with the types that NumPy would use. What comes out is a `Program`: a flat
list of typed steps. It is a value: programs that are equal are the same kernel, and its text names the kernel on disk.

A body that asks for more than one element at a time, or for the value of one, cannot be traced: `Untraceable` is
raised, and NumPy runs it as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Step = tuple[Any, ...]
"""The name of an operation, the type of its result, and its operands: numbers of earlier steps, or for inputs and
constants what they are."""


class Untraceable(Exception):
    """A body does something that has no place in an expression."""


class Program(NamedTuple):
    """What to compute for one element: `steps` in order, of which `results` are handed on."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def result_types(self) -> list[str]:
        """The types of the results."""
        return [self.steps[number][1] for number in self.results]

    def stored_as(self, name: str) -> Program:
        """The program with its results in the type that they are stored from."""
        steps, results = list(self.steps), []
        for number in self.results:
            if steps[number][1] != name:
                steps.append(("cast", name, number))
                number = len(steps) - 1
            results.append(number)
        return Program(tuple(steps), tuple(results))


def computed_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which elements of `dtype` are computed with."""
    return np.dtype(np.float32) if dtype.name in ("bfloat16", "float16") else dtype


_TYPES = frozenset(("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"))


class Trace:
    """The steps that a body has taken so far."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._known: dict[Step, int] = {}

    def number(self, *what: Any) -> int:
        """The number of a step, or of the earlier one that is the same."""
        number = self._known.get(what)
        if number is None:
            number = self._known[what] = len(self.steps)
            self.steps.append(what)
        return number

    def step(self, *what: Any) -> Expr:
        """A step, or the earlier one that is the same."""
        return Expr(self, self.number(*what), np.dtype(what[1]))

    def input(self, position: int, dtype: np.dtype[Any]) -> Expr:
        """An element of the input at `position`."""
        return self.step("input", _name(dtype), position)

    def constant(self, value: Any, dtype: np.dtype[Any]) -> Expr:
        """A number. Floats are written in full, and so that NaN equals itself."""
        name = _name(dtype)
        text = float(value).hex() if name.startswith("float") else repr(int(value))
        return self.step("constant", name, text)

    def apply(self, name: str, result: np.dtype[Any], *operands: Expr) -> Expr:
        """A step that computes."""
        return self.step(name, _name(result), *[each.number for each in operands])

    def cast(self, operand: Any, dtype: np.dtype[Any]) -> Expr:
        """An operand, expression or number, in another type."""
        if not isinstance(operand, Expr):
            if isinstance(operand, np.ndarray) and operand.ndim:
                raise Untraceable("a table")
            if isinstance(operand, complex):
                raise Untraceable("a complex number")
            return self.constant(np.asarray(operand).astype(dtype)[()], dtype)
        if operand.trace is not self:
            raise Untraceable("two traces meet")
        return operand if operand.dtype == dtype else self.apply("cast", dtype, operand)

    def inlined(self, program: Program, operands: Sequence[Any]) -> list[Expr]:
        """The results of a program of some operands, whose steps are written behind those that are there."""
        numbers: list[int] = []
        for name, type_name, *rest in program.steps:
            if name == "input":
                numbers.append(self.cast(operands[rest[0]], np.dtype(type_name)).number)
            elif name == "constant":
                numbers.append(self.number(name, type_name, *rest))
            else:
                numbers.append(self.number(name, type_name, *[numbers[each] for each in rest]))
        return [Expr(self, numbers[each], np.dtype(program.steps[each][1])) for each in program.results]

    def forget(self, count: int) -> None:
        """Take back all steps but the first `count`: what they were for is not done."""
        for each in self.steps[count:]:
            del self._known[each]
        del self.steps[count:]

    def program(self, results: Sequence[Expr]) -> Program:
        """Everything that was written down."""
        return Program(tuple(self.steps), tuple(each.number for each in results))


@functools.cache
def _name(dtype: np.dtype[Any]) -> str:  # NumPy puts the names of dtypes together whenever it is asked
    if dtype.name not in _TYPES:
        raise Untraceable(f"a number of type {dtype.name}")
    return dtype.name


class Expr(NDArrayOperatorsMixin):
    """A number of an expression: one element of an array that does not exist."""

    __slots__ = ("dtype", "number", "trace")
    is_expression = True

    def __init__(self, trace: Trace, number: int, dtype: np.dtype[Any]) -> None:
        self.trace = trace
        self.number = number
        self.dtype = dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        dtype = options.pop("dtype", None)
        target = options.pop("out", (None,))[0]
        if method != "__call__" or options or ufunc.nout != 1:
            raise Untraceable(f"{ufunc.__name__}.{method} with {sorted(options)}")
        if dtype is not None:
            inputs = tuple(self.trace.cast(each, np.dtype(dtype)) for each in inputs)
        result = self._call(ufunc, inputs)
        if target is None:
            return result
        if not isinstance(target, Expr):
            raise Untraceable("a result that goes into an array")
        target.number = self.trace.cast(result, target.dtype).number  # written over: from here on it is the result
        return target

    def call(self, name: str, *operands: Any) -> Expr:
        """A function that NumPy does not have, of floating-point operands."""
        common = np.result_type(*[_type_of(each) for each in operands])
        if common.kind != "f":
            raise Untraceable(f"{name} of {common}")
        return self.trace.apply(name, common, *[self.trace.cast(each, common) for each in operands])

    def _call(self, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Expr:
        given = tuple(_type_of(each) for each in inputs)
        try:
            *wanted, result = ufunc.resolve_dtypes((*given, None))
        except TypeError as error:
            raise Untraceable(str(error)) from None
        return self.trace.apply(
            ufunc.__name__, result, *[self.trace.cast(each, dtype) for each, dtype in zip(inputs, wanted, strict=True)]
        )

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        handler = _FUNCTIONS.get(function)
        if handler is None or kwargs:
            raise Untraceable(function.__name__)
        return handler(self.trace, *args)

    @property
    def itemsize(self) -> int:
        """How many bytes it takes."""
        return self.dtype.itemsize

    def astype(self, dtype: Any, copy: bool = True) -> Expr:
        """The number in another type."""
        return self.trace.cast(self, np.dtype(dtype))

    def copy(self) -> Expr:
        """The number itself: there is nothing that could change."""
        return self

    def __bool__(self) -> bool:
        raise Untraceable("a decision about the value of an element")

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"the attribute {name}")


def _type_of(operand: Any) -> Any:
    """What NumPy's rules of promotion look at: a dtype, or the class of a Python number."""
    if type(operand) in (int, float):
        return type(operand)
    if type(operand) is bool:
        return np.dtype(bool)
    if not hasattr(operand, "dtype"):
        raise Untraceable(f"an operand of class {type(operand).__name__}")
    return operand.dtype


def _where(trace: Trace, condition: Any, chosen: Any, other: Any) -> Expr:
    types = [each if type(each) in (int, float) else _type_of(each) for each in (chosen, other)]
    common = np.result_type(*types)
    test = trace.cast(condition, np.dtype(bool))
    return trace.apply("select", common, test, trace.cast(chosen, common), trace.cast(other, common))


def _clip(trace: Trace, value: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(value, low), high)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: _clip,
    np.zeros_like: lambda trace, x: trace.constant(0, x.dtype),
    np.ones_like: lambda trace, x: trace.constant(1, x.dtype),
    np.full_like: lambda trace, x, value: trace.cast(value, x.dtype),
}


def trace_body(body: Callable[..., Any], operands: Sequence[Any]) -> Program:
    """The program of a body. Operands that are dtypes become inputs, in order; all others are handed on as they are."""
    trace = Trace()
    position = 0
    given = []
    for operand in operands:
        if isinstance(operand, np.dtype):
            operand = trace.input(position, operand)
            position += 1
        given.append(operand)
    try:
        computed = body(*given)
    except Untraceable:
        raise
    except Exception as error:  # whatever it is: if it is not about the trace, the body will raise it again
        raise Untraceable(str(error)) from error
    results = computed if isinstance(computed, tuple) else (computed,)
    if not all(isinstance(each, Expr) for each in results):
        raise Untraceable("a result that is no expression")
    return trace.program(results)
