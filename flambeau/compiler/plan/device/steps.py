"""What elementwise calls compute, as programs of one element."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._codegen.expr import Program, computed_type
from ...._core.tensor import Tensor
from ...._dispatch.compiled_body import BODIES
from ...._dispatch.dispatch import Primitive
from ...._dispatch.elementwise import Elementwise
from ...._dispatch.gradients.fused_derivatives import Derivative, is_operand
from ...program.items import Call, Value
from ...program.lower import takes_number

_HALVES = frozenset(("float16", "bfloat16"))
_FLOATS = frozenset(("float32", "float64", *_HALVES))


class Step(NamedTuple):
    """An elementwise call: what it computes of which operands, values or numbers, and for which results."""

    call: Call
    program: Program
    operands: list[Any]
    examples: list[Any]
    """The operands as they were."""
    results: list[tuple[Value, Tensor]]


def step_of(call: Call, family: Any) -> Step | None:
    """A call as a step, of which `family` has the programs; None: it is none."""
    if type(call) is not Call or not call.examples or not _is_float(call.examples[0]):
        return None
    op = call.op
    if isinstance(op, Elementwise):
        return _elementwise(op, call)
    if isinstance(op, Derivative):
        return _derivative(op, call, family)
    if op.name == "to_copy":
        return _conversion(call)
    return _marked(op, call, family) if isinstance(op, Primitive) and op.kernel in BODIES else None


def _is_float(example: Any) -> bool:
    return isinstance(example, Tensor) and example._array.dtype.name in _FLOATS


def _number(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a kernel for arrays of a dtype takes it."""
    return float(dtype.type(value)) if dtype.name in _HALVES else value


def _elementwise(op: Elementwise, call: Call) -> Step | None:
    first = call.examples[0]
    entry = op.table.get(first._kind)
    if entry is None:
        return None
    operands = list(call.args)
    for position, each in enumerate(call.examples[1:], 1):
        if isinstance(each, Tensor):
            if each._kind is not first._kind:
                return None
        elif not takes_number(op, first, each, call.made):
            return None
        else:
            operands[position] = _number(each, first._array.dtype)
    compiled = entry[2].compiled_for(len(operands))
    if compiled is None:
        return None
    return Step(call, compiled.program, operands, list(call.examples), [(call.results, call.made)])


def _derivative(op: Derivative, call: Call, family: Any) -> Step | None:
    grad, needed, *saved = call.examples
    fusion = op.fusion(family, grad, needed, tuple(saved))
    if fusion is None or fusion.compiled is None or type(call.results) is not list:
        return None
    chosen = [0, *[position for position, each in enumerate(saved, 2) if is_operand(each)]]
    dtype = grad._array.dtype
    operands = [
        each if type(each) is Value else _number(each, dtype) for each in [call.args[position] for position in chosen]
    ]
    wanted = [pair for pair in zip(call.results, call.made, strict=True) if type(pair[0]) is Value]
    if len(wanted) != len(fusion.passed_on):
        return None
    results = []
    for pair, position in zip(wanted, fusion.passed_on, strict=True):
        if position is None:
            results.append(pair)
        elif operands[position] != pair[0]:
            return None
    return Step(call, fusion.compiled.program, operands, [call.examples[position] for position in chosen], results)


def _conversion(call: Call) -> Step | None:
    """From one floating dtype to another, but not from float64 to half precision: kernels compute that in float32."""
    source, made = call.examples[0]._array.dtype, call.made._array.dtype
    if call.args[2] is not None or made.name not in _FLOATS or {source.name, made.name} - _HALVES == {"float64"}:
        return None
    given, wanted = computed_type(source).name, computed_type(made).name
    program = Program((("input", given, 0),), (0,)).stored_as(wanted)
    return Step(call, program, [call.args[0]], [call.examples[0]], [(call.results, call.made)])


def _marked(op: Primitive[..., Any], call: Call, family: Any) -> Step | None:
    """A kernel that is marked as elementwise in its arrays, which are alike; other arguments are part of the code."""
    first = call.examples[0]
    chosen = [position for position, each in enumerate(call.examples) if isinstance(each, Tensor)]
    alike = all(
        call.examples[position]._kind is first._kind and call.examples[position]._array.shape == first._array.shape
        for position in chosen
    )
    if not alike or type(call.results) is not Value or first._kind.backend.lowering(op.name) is not None:
        return None
    dtype = first._array.dtype
    given = [dtype if isinstance(each, Tensor) else each for each in call.examples]
    compiled = family.pointwise(BODIES[op.kernel], given, dtype)
    if compiled is None or len(compiled.results) != 1:
        return None
    operands, examples = ([tree[position] for position in chosen] for tree in (call.args, call.examples))
    return Step(call, compiled.program, operands, examples, [(call.results, call.made)])
