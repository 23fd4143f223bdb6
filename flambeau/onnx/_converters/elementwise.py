"""Elementwise ops without a converter: their bodies, traced into steps, and each step as ONNX's operators.

A body such as `x * np.log1p(y)` is what generated kernels are made of, too (`_codegen/expr.py`). An op that has one can
be exported as it is; a converter is for those for which ONNX has an operator of their own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._codegen.expr import Program, Untraceable, computed_type, trace_body
from ..._dispatch.compiled_body import BODIES
from ..._dispatch.dispatch import Primitive
from ..._dispatch.elementwise import TO_BOOL, Elementwise
from ..._dispatch.op import OPS, Op
from .._element_types import BFLOAT16
from .._graph import BOOL, Graph, Value
from .._sizes import Size
from ._table import CONVERTERS, Result, Unsupported

Step = Callable[..., Value]
"""Is given the graph, the dtype of the result, and the operands."""

FLOAT32 = np.dtype(np.float32)


def has_converter(name: str) -> bool:
    """Whether an op can be said in ONNX's operators: by a converter, or step by step."""
    return name in CONVERTERS or has_steps(name)


@functools.cache
def has_steps(name: str) -> bool:
    """Whether an op is elementwise, and all its steps have operators for some dtype."""
    body = _body(OPS[name]) if name in OPS else None
    return body is not None and any(_are_known(OPS[name], body, np.dtype(each)) for each in ("f4", "i4", "?"))


def _are_known(op: Op, body: Callable[..., Any], dtype: np.dtype[Any]) -> bool:
    operands = [dtype if place in op.tensor_positions else 0.5 for place in range(len(op.parameters))]
    try:
        steps = trace_body(body, operands).steps
    except Untraceable:
        return False
    return all(name in STEPS or name in ("input", "constant", "cast") for name, *_ in steps)


def _body(op: Op) -> Callable[..., Any] | None:
    if isinstance(op, Elementwise):
        return op.body
    return BODIES.get(op.kernel) if isinstance(op, Primitive) else None


def convert_steps(op: Op, g: Graph, call: Result, args: Sequence[Any]) -> Any:
    """The results of an elementwise op; `Unsupported` if it is none, or a step has no operators."""
    body = _body(op)
    if body is None:
        raise Unsupported("it has no converter to ONNX")
    given = [g.scalar(each) if isinstance(each, Size) else each for each in args]
    values = [each for each in given if isinstance(each, Value)]
    common = values[0].dtype
    if isinstance(op, Elementwise):
        common = common_dtype(given) if op.rule == TO_BOOL else call.dtype
    inputs, operands = [], []
    for position, each in enumerate(given):
        if isinstance(each, Value):
            own = position in op.tensor_positions and not isinstance(op, Elementwise)
            inputs.append(each if own else g.cast(each, common))
            each = computed_type(inputs[-1].dtype)
        operands.append(each)
    try:
        program = trace_body(body, operands)
    except Untraceable as error:
        raise Unsupported(f"it has no converter to ONNX, and its steps are not known ({error})") from None
    half = next((each.dtype for each in inputs if computed_type(each.dtype) != each.dtype), FLOAT32)
    made = [g.cast(value, dtype) for value, dtype in zip(_written(g, program, inputs, half), call.dtypes, strict=True)]
    return made if len(made) > 1 else made[0]


def common_dtype(given: Sequence[Any]) -> np.dtype[Any]:
    """The dtype in which operands are compared."""
    dtypes = [each.dtype for each in given if isinstance(each, Value)]
    found = max(dtypes, key=lambda each: "biufcV".index(each.kind))
    for each in dtypes:
        if each.kind == found.kind != "V":
            found = np.promote_types(found, each)
    if any(isinstance(each, float) for each in given) and found.kind in "iub":
        return FLOAT32
    is_number = any(isinstance(each, int) and not isinstance(each, bool) for each in given)
    return np.dtype(np.int64) if is_number and found == BOOL else found


def _written(g: Graph, program: Program, inputs: Sequence[Value], single: np.dtype[Any]) -> list[Value]:
    """The steps that results need, as nodes; floats of 32 bits have the dtype `single`."""
    needed = set(program.results)
    for number in reversed(range(len(program.steps))):
        name, _, *rest = program.steps[number]
        if number in needed and name not in ("input", "constant"):
            needed.update(rest)
    values: dict[int, Value] = {}
    for number in sorted(needed):
        name, type_name, *rest = program.steps[number]
        dtype = single if type_name == "float32" else np.dtype(type_name)
        if name == "input":
            values[number] = g.cast(inputs[rest[0]], dtype)
        elif name == "constant":
            values[number] = g.const(float.fromhex(rest[0]) if "float" in type_name else int(rest[0]), dtype)
        elif name == "cast":
            values[number] = g.cast(values[rest[0]], dtype)
        else:
            values[number] = step(name)(g, dtype, *[values[each] for each in rest])
    return [values[each] for each in program.results]


def step(name: str) -> Step:
    """What a step is in operators."""
    found = STEPS.get(name)
    if found is None:
        raise Unsupported(f"ONNX has no operators for {name}")
    return found


# ----- steps ----------------------------------------------------------------------------------------------------------


def _node(kind: str) -> Step:
    return lambda g, dtype, *operands: g.op(kind, *operands, dtype=dtype)


def _rounding(kind: str) -> Step:
    return lambda g, dtype, x: x if dtype.kind in "iub" else g.op(kind, x)


def _of_truths(kind: str, of_truths: str) -> Step:
    """An operator that ONNX has under another name for truths."""
    return lambda g, dtype, *operands: g.op(of_truths if dtype == BOOL else kind, *operands)


def _comparison(kind: str) -> Step:
    def compare(g: Graph, dtype: Any, x: Value, y: Value) -> Value:
        if x.dtype == BOOL or x.dtype == BFLOAT16:
            wide = np.int32 if x.dtype == BOOL else np.float32
            x, y = g.cast(x, wide), g.cast(y, wide)
        return g.op(kind, x, y, dtype=bool)

    return compare


def _logical(kind: str) -> Step:
    return lambda g, dtype, *operands: g.op(kind, *[g.cast(each, bool) for each in operands])


def _special_float(kind: str) -> Step:
    return lambda g, dtype, x: g.op(kind, g.cast(x, np.float32) if x.dtype == BFLOAT16 else x, dtype=bool)


def is_below(g: Graph, x: Value, bound: float = 0) -> Value:
    """Whether elements are less than a number."""
    return g.op("Less", x, bound, dtype=bool)


def is_equal(g: Graph, x: Value, number: float = 0) -> Value:
    """Whether elements are a number."""
    return g.op("Equal", x, number, dtype=bool)


def _trunc(g: Graph, dtype: Any, x: Value) -> Value:
    return x if dtype.kind in "iub" else g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x)))


def _tan(g: Graph, dtype: Any, x: Value) -> Value:
    if dtype == np.float32:
        return g.op("Tan", x)
    return g.op("Div", g.op("Sin", x), g.op("Cos", x))  # onnxruntime knows no tangents of other floats


def _extreme_but_nan(kind: str) -> Step:
    def extreme(g: Graph, dtype: Any, x: Value, y: Value) -> Value:
        if dtype.kind == "f":
            is_nan = step("isnan")
            x, y = g.where(is_nan(g, BOOL, x), y, x), g.where(is_nan(g, BOOL, y), x, y)
        return step(kind)(g, dtype, x, y)

    return extreme


def _arctan2(g: Graph, dtype: Any, y: Value, x: Value) -> Value:
    slope = g.op("Atan", g.op("Div", y, g.where(is_equal(g, x), 1, x)))
    half = g.where(is_below(g, y), g.const(-math.pi, dtype), g.const(math.pi, dtype))
    left = g.where(is_below(g, x), g.op("Add", slope, half), slope)
    return g.where(is_equal(g, x), g.op("Mul", g.op("Sign", y), math.pi / 2), left)


def _is_negative(g: Graph, dtype: Any, x: Value) -> Value:
    """Whether the sign is minus: 1 / -0 is negative."""
    return g.op("Or", is_below(g, x), is_below(g, g.op("Reciprocal", x)))


def _log_add_exp(unit: float) -> Step:
    def compute(g: Graph, dtype: Any, x: Value, y: Value) -> Value:
        gap = g.op("Mul", g.op("Neg", g.op("Abs", g.op("Sub", x, y))), unit)
        rest = g.op("Div", g.op("Log", g.op("Add", g.op("Exp", gap), 1)), unit)
        return g.op("Add", g.op("Max", x, y), rest)

    return compute


def _erfinv(g: Graph, dtype: Any, x: Value) -> Value:
    """Winitzki's approximation and three steps of Newton's method."""
    log = g.op("Log", g.op("Mul", g.op("Sub", g.const(1, dtype), x), g.op("Add", x, 1)))
    a = 0.147
    first = g.op("Add", g.op("Mul", log, 0.5), 2 / (math.pi * a))
    inside = g.op("Sub", g.op("Sqrt", g.op("Sub", g.op("Mul", first, first), g.op("Div", log, a))), first)
    y = g.op("Mul", g.op("Sign", x), g.op("Sqrt", inside))
    for _ in range(3):
        error = g.op("Sub", g.op("Erf", y), x)
        slope = g.op("Mul", g.op("Exp", g.op("Neg", g.op("Mul", y, y))), 2 / math.sqrt(math.pi))
        y = g.op("Sub", y, g.op("Div", error, slope))
    return g.where(is_equal(g, g.op("Abs", x), 1), g.op("Mul", g.op("Sign", x), math.inf), y)


def _logarithm(base: int) -> Step:
    return lambda g, dtype, x: g.op("Div", g.op("Log", x), math.log(base))


STEPS: dict[str, Step] = {
    **{name: _node(kind) for name, kind in {
        "absolute": "Abs", "arccos": "Acos", "arccosh": "Acosh", "arcsin": "Asin", "arcsinh": "Asinh",
        "arctan": "Atan", "arctanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "divide": "Div", "equal": "Equal",
        "erf": "Erf", "exp": "Exp", "log": "Log", "negative": "Neg", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt",
        "subtract": "Sub", "tanh": "Tanh",
    }.items()},
    **{name: _rounding(kind) for name, kind in {"floor": "Floor", "ceil": "Ceil", "rint": "Round"}.items()},
    **{name: _of_truths(kind, of_truths) for name, kind, of_truths in (
        ("add", "Add", "Or"), ("multiply", "Mul", "And"), ("maximum", "Max", "Or"), ("minimum", "Min", "And"),
        ("bitwise_and", "BitwiseAnd", "And"), ("bitwise_or", "BitwiseOr", "Or"), ("bitwise_xor", "BitwiseXor", "Xor"),
        ("invert", "BitwiseNot", "Not"),
    )},
    **{name: _comparison(kind) for name, kind in {
        "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
    }.items()},
    **{f"logical_{name}": _logical(name.capitalize()) for name in ("and", "or", "xor", "not")},
    "not_equal": lambda g, dtype, x, y: g.op("Not", g.op("Equal", x, y, dtype=bool)),
    "select": lambda g, dtype, test, x, y: g.op("Where", g.cast(test, bool), x, y, dtype=dtype),
    "positive": lambda g, dtype, x: x,
    "tan": _tan,
    "trunc": _trunc,
    "exp2": lambda g, dtype, x: g.op("Exp", g.op("Mul", x, math.log(2))),
    "expm1": lambda g, dtype, x: g.op("Sub", g.op("Exp", x), 1),
    "log1p": lambda g, dtype, x: g.op("Log", g.op("Add", x, 1)),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
    "erfc": lambda g, dtype, x: g.op("Sub", g.const(1, dtype), g.op("Erf", x)),
    "erfinv": _erfinv,
    "fmax": _extreme_but_nan("maximum"),
    "fmin": _extreme_but_nan("minimum"),
    "hypot": lambda g, dtype, x, y: g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y))),
    "arctan2": _arctan2,
    "signbit": _is_negative,
    "copysign": lambda g, dtype, x, y: g.where(_is_negative(g, dtype, y), g.op("Neg", g.op("Abs", x)), g.op("Abs", x)),
    "logaddexp": _log_add_exp(1.0),
    "logaddexp2": _log_add_exp(math.log(2)),
    "isnan": _special_float("IsNaN"),
    "isinf": _special_float("IsInf"),
    "isfinite": lambda g, dtype, x: g.op("Not", g.op("Or", step("isnan")(g, dtype, x), step("isinf")(g, dtype, x))),
}  # fmt: skip
"""By the names of functions of NumPy, and of those that generated code has besides."""
