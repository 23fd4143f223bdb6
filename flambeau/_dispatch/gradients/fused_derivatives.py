"""Derivatives of elementwise ops in one pass: the formulas of a node, traced and compiled.

A derivative is written in Flambeau's own ops, as in `grad * (1 - result * result)`. Run as it stands it reads and
writes memory at every step. In an ordinary backward pass over large tensors, whose own steps nobody will
differentiate, the formulas of all inputs that need a gradient are traced (`tracing.py`); what they computed becomes one
kernel, which reads each operand once. Formulas that do more than elementwise arithmetic cannot be
traced, and run as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.dtype import bfloat16, float16, float32
from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.node import OpNode, SavedTensor
from ..._core.process.locks import new_lock
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..call.results import fresh, leaf
from ..interpreter import interpret
from ..op import Op

_MOST_VARIANTS = 16
_MOST_PLANS = 1024
"""So many combinations of operands are remembered for each op."""


def _kernels(grad: Tensor) -> Any:
    """What compiles formulas; None where a few samples, whose formulas run as they stand, give the bits of many."""
    return None if REPRODUCIBILITY.product is not None else grad._kind.backend.functions["pointwise"]


class _Fusion:
    """The compiled formulas of a node class for one choice of operands."""

    __slots__ = ("compiled", "passed_on")

    def __init__(self, compiled: Any, passed_on: tuple[int | None, ...]) -> None:
        self.compiled = compiled
        self.passed_on = passed_on
        """For each gradient: None if it is computed, else the number of the operand that it is."""


class Derivative(Op):
    """The derivative of an op as one op: its formulas, for one gradient, as `(grad, needed, *saved)`."""

    def __init__(self, node_type: type[OpNode]) -> None:
        self.enter(f"{node_type.op.name}_derivative")
        self.node_type = node_type
        self.parameters = ("grad", "needed", *node_type.saved_names)
        self.plans: dict[Any, tuple[Any, list[int | None] | None]] = {}
        """By operands and by which gradients are needed: the kernel, and for each gradient where it comes from.

        That is None where it is not needed, -1 where the kernel computes it, else the number of an operand. None for
        all of them: the formulas have to run as they stand.
        """

    def __call__(self, grad: Tensor, needed: tuple[bool, ...], *saved: Any) -> Any:
        """The gradients of the inputs in one pass; None: the formulas have to run as they stand."""
        if THREAD.modes.grad or THREAD.modes.forward_level >= 0 or type(grad) not in PLAIN_TYPES:
            return None
        if grad._kind.indirect:
            return None
        module = _kernels(grad)
        fusion = None if module is None else self.fusion(module, grad, needed, saved)
        if fusion is None:
            return None
        if THREAD.modes.interpreters:
            return interpret(self, (grad, needed, *saved), THREAD.modes)
        operands = [grad, *[each for each in saved if is_operand(each)]]
        arrays = [each._array if isinstance(each, Tensor) else each for each in operands]
        computed = iter(fusion.compiled.many(*arrays) if fusion.compiled is not None else ())
        numbers = iter(fusion.passed_on)
        results: list[Any] = []
        for wanted, formula in zip(needed, self.node_type.formulas, strict=True):
            if not wanted or formula is None:
                results.append(None)
                continue
            number = next(numbers)
            results.append(fresh(next(computed), grad) if number is None else operands[number])
        return results

    def note_plan(self, key: Any, grad: Tensor, needed: tuple[bool, ...], saved: tuple[Any, ...]) -> None:
        """Keep under a key how the gradients are computed in one pass, if they can be."""
        module = None if grad._kind.indirect else _kernels(grad)
        fusion = None if module is None else self.fusion(module, grad, needed, saved)
        if len(self.plans) >= _MOST_PLANS:
            self.plans.clear()
        self.plans[key] = (None, None) if fusion is None else (fusion.compiled, self.sources(fusion, needed))

    def sources(self, fusion: _Fusion, needed: tuple[bool, ...]) -> list[int | None]:
        """For each gradient where it comes from, as in `plans`."""
        numbers, found = iter(fusion.passed_on), []
        for wanted, formula in zip(needed, self.node_type.formulas, strict=True):
            number = next(numbers) if wanted and formula is not None else None
            found.append(None if not wanted or formula is None else -1 if number is None else number)
        return found

    def decomposition(self, grad: Any, needed: tuple[bool, ...], *saved: Any) -> list[Any]:
        """The formulas, one after the other."""
        named = dict(zip(self.node_type.saved_names, saved, strict=True))
        return [
            entry[0](grad, *[named[name] for name in entry[1]]) if wanted and entry is not None else None
            for wanted, entry in zip(needed, self.node_type.formulas, strict=True)
        ]

    def tensors_of(self, args: Any) -> list[Tensor]:
        return [each for each in args if isinstance(each, Tensor)]

    def fusion(self, module: Any, grad: Tensor, needed: tuple[bool, ...], saved: tuple[Any, ...]) -> _Fusion | None:
        """The formulas compiled for such operands; None: they cannot be."""
        shape = grad._array.shape
        key: list[Any] = [grad._kind, needed]
        for name, value in zip(self.node_type.saved_names, saved, strict=True):
            if isinstance(value, Tensor):
                if type(value) not in PLAIN_TYPES or not _meets(value._kind, grad._kind):
                    return None
                if not _fits(value._array.shape, shape):
                    return None
                key.append(value._kind)
            else:
                key.append(float if type(value) in (float, int) else (name, value))
        fusions = self.node_type.__dict__.get("fusions") or _table(self.node_type)
        made: _Fusion | None
        try:
            made = fusions[tuple(key)]
        except KeyError:
            made = _fuse(module, self.node_type, grad, saved, needed) if len(fusions) < _MOST_VARIANTS else None
            fusions[tuple(key)] = made
        except TypeError:  # a saved value without a hash
            return None
        return made


def _meets(saved: Kind, grad: Kind) -> bool:
    """Whether a formula of such tensors computes in the gradient's dtype, and gives that: what autocast mixes does."""
    if saved is grad:
        return True
    is_half = saved.dtype in (float16, bfloat16) and not saved.indirect
    return is_half and grad.dtype is float32 and saved.device is grad.device and grad.backend.costs_per_call


def is_operand(value: Any) -> bool:
    """Whether a saved value is an operand of the kernel; all others are part of its code."""
    return isinstance(value, Tensor) or type(value) in (float, int)


def fused(node: OpNode, grad: Tensor, values: dict[str, Any] | None, edges: Sequence[Any]) -> Sequence[Any] | None:
    """The gradients of a node's inputs in one pass; None: the formulas have to run as they stand.

    What `Derivative` finds out about operands like these is kept, so that the next call asks nothing.
    """
    if REPRODUCIBILITY.product is not None:  # before what was kept without a level is looked at
        return None
    node_type, modes = type(node), THREAD.modes
    op = node_type.__dict__.get("derivative") or _derivative_of(node_type)
    needed = tuple([edge is not None for edge in edges])
    done: list[Any] | None
    if values is None:
        values = {}
    if modes.grad or modes.interpreters or modes.forward_level >= 0 or type(grad) not in PLAIN_TYPES:
        done = op(grad, needed, *values.values())
        return done
    array = grad._array
    operands: list[Any] = [grad]
    arrays: list[Any] = [array]
    described: list[Any] = [grad._kind, array.shape, needed]
    for each in values.values():
        if type(each) in PLAIN_TYPES:
            array = each._array
            described += each._kind, array.shape
            operands.append(each)
            arrays.append(array)
        elif type(each) is float or type(each) is int:
            described.append(float)
            operands.append(each)
            arrays.append(each)
        else:
            described.append(each)
    key = tuple(described)
    try:
        plan = op.plans.get(key)
    except TypeError:  # a saved value without a hash
        return None
    if plan is None:
        op.note_plan(key, grad, needed, tuple(values.values()))
        done = op(grad, needed, *values.values())
        return done
    kernel, sources = plan
    if sources is None:
        return None
    computed = iter(() if kernel is None else kernel.many(*arrays))
    results: list[Any] = []
    for source in sources:
        if source is None:
            results.append(None)
        else:
            results.append(fresh(next(computed), grad) if source < 0 else operands[source])
    return results


_Plan = tuple[Any, Any, Any]
"""The kernel, its call for some layouts, and for each gradient where it comes from. Nothing of the last: the formulas
have to run as they stand; None: `fused` has to look at each call.
"""


def by_plan(
    node: OpNode, grad: Tensor, plans: dict[Any, _Plan], saved: tuple[Any, ...], edges: Sequence[Any]
) -> Sequence[Any] | None:
    """`fused` on devices whose arrays have a `layout`: the kernel's plan is found by the layouts of what it reads.

    `saved` is what the node keeps, not unpacked. Nothing in the result: the formulas have to run; None: `fused` has to
    look at the call.
    """
    modes, kind = THREAD.modes, grad._kind
    if modes.grad or kind not in modes.direct or type(grad) not in PLAIN_TYPES or REPRODUCIBILITY.product is not None:
        return None
    array, device = grad._array, kind.device
    arrays: list[Any] = [array]
    described: list[Any] = [kind, array.layout]
    for each in saved:
        if type(each) is SavedTensor:
            array = each.array_on(device)
            if array is None:
                return None
            arrays.append(array)
            described.append(array.layout)
        elif type(each) is float or type(each) is int:
            arrays.append(each)
            described.append(float)
        else:
            described.append(each)
    described.extend([edge is None for edge in edges])
    key = tuple(described)
    try:
        kernel, call, sources = plans.get(key) or _planned(node, grad, plans, key, arrays, edges)
    except TypeError:  # a saved value without a hash
        return None
    if not sources:
        return None if sources is None else ()
    made = iter(() if call is None else kernel.results_of(call, arrays))
    results: list[Any] = []
    for source in sources:
        if source is None:
            results.append(None)
        elif source:
            results.append(leaf(next(made), kind))
        else:
            results.append(grad)
    return results


def _planned(
    node: OpNode, grad: Tensor, plans: dict[Any, _Plan], key: Any, arrays: list[Any], edges: Sequence[Any]
) -> _Plan:
    """The plan of a node's gradients for some layouts, from now on found by `key`."""
    op = type(node).__dict__.get("derivative") or _derivative_of(type(node))
    needed = tuple([edge is not None for edge in edges])
    values = tuple(node.saved().values())
    module = None if type(grad._kind) is not Kind or grad._kind.indirect else _kernels(grad)
    fusion = None if module is None else op.fusion(module, grad, needed, values)
    plan: _Plan = None, None, ()
    if fusion is not None:
        sources = op.sources(fusion, needed)
        if any(each is not None and each > 0 for each in sources):  # a saved tensor is handed on as it is
            plan = None, None, None
        else:
            plan = fusion.compiled, None if fusion.compiled is None else fusion.compiled.call_for(arrays), sources
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


_making = new_lock()


def _derivative_of(node_type: type[OpNode]) -> Derivative:
    with _making:  # an op's name can be taken once
        if "derivative" not in node_type.__dict__:
            node_type.derivative = Derivative(node_type)
        made: Derivative = node_type.derivative
        return made


def _table(cls: type[OpNode]) -> dict[Any, Any]:
    cls.fusions = {}
    return cls.fusions


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to `whole`, the shape of the gradient."""
    if shape == whole:
        return True
    return len(shape) <= len(whole) and all(
        own in (1, size) for own, size in zip(reversed(shape), reversed(whole), strict=False)
    )


def _fuse(
    module: Any, node_type: type[OpNode], grad: Tensor, saved: tuple[Any, ...], needed: tuple[bool, ...]
) -> _Fusion | None:
    from ..abstract.tracing import AbstractTensor, of_expressions  # late: programs without large tensors do not need it

    wanted = [entry for need, entry in zip(needed, node_type.formulas, strict=True) if need and entry is not None]
    kind = grad._kind
    array_type = grad._array.dtype
    passed_on: list[int | None] = []

    def body(*operands: Any) -> Any:
        symbols = of_expressions(operands, kind)
        remaining = iter(symbols[1:])
        named = {
            name: next(remaining) if is_operand(value) else value
            for name, value in zip(node_type.saved_names, saved, strict=True)
        }
        results = []
        for formula, names in wanted:
            result = formula(symbols[0], *[named[name] for name in names])
            if not isinstance(result, AbstractTensor):
                raise TypeError("the formula gives no tensor")
            same = next((i for i, each in enumerate(symbols) if each.number == result.number), None)
            passed_on.append(same)
            if same is None:
                results.append(result.expression())
        return tuple(results)

    given = [each for each in saved if is_operand(each)]
    operands = [array_type, *[each._array.dtype if isinstance(each, Tensor) else array_type for each in given]]
    compiled = module.pointwise(body, operands, array_type)
    return None if compiled is None else _Fusion(compiled if compiled.results else None, tuple(passed_on))
