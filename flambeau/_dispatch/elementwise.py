"""Elementwise ops: a scalar body applied to every element, with the short path that tiny tensors need.

`unary` and `binary` turn a body, a promotion rule and derivative formulas into a public op. A body is written on arrays
with NumPy's functions; it sees operands of one dtype. For each kind of tensor the body is prepared once (conversion of
integers to floats, half precision computed in float32) and then found by one dictionary look-up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, cast

import numpy as np

from .._core.arrays.lazy_signs import content
from .._core.arrays.narrow import as_type, widened
from .._core.arrays.quick import joint_shape
from .._core.backend import ARRAY_CLASSES, LARGE, as_array, is_array
from .._core.device import CPU
from .._core.dtype import (
    COMPLEX,
    DEFAULTS,
    FLOAT,
    INTEGER,
    LEGACY_NAMES,
    bfloat16,
    bool_,
    dtype,
    float16,
    float32,
    is_packed,
    promote_types,
)
from .._core.geometry.layout import arranged
from .._core.kind import Kind, kind_of
from .._core.modes import THREAD, Ruled
from .._core.node import OpNode
from .._core.process.reproducibility import REPRODUCIBILITY
from .._core.tensor import DIRECT_TYPES, PLAIN_TYPES, Tensor
from .arguments.autocast_rules import ELEMENTWISE_DEVICES, Autocast, rules_of
from .arguments.casting_calls import operands
from .arguments.promotion import is_number, result_type_of
from .axes import ELEMENTS
from .call.elementwise import grows, shape_error, short_binary, short_change, short_unary
from .changes.history import end_change
from .changes.inplace import (
    check_castable,
    check_no_overlap,
    check_partial_overlap,
    check_writable,
    run_inplace,
    version_before,
)
from .compiled_body import AT_ANY_SIZE, LargeBody, MixedBody
from .dispatch import after, formula_names, leading, node_class
from .gradients.recorder import Recorder, elementwise_recorder, nothing
from .interpreter import at_level, interpret, watched
from .op import Formula, Op
from .public.docstrings.documentation import of_elementwise
from .public.namespaces import Namespace, written
from .public.overrides import has_override, run_override
from .public.protocol import Function, explain, write_out
from .public.registry import FUNCTIONS, METHODS, at_home, publish, resolved, shown_name, written_for

Body = Callable[..., Any]
Entry = tuple[Body, Kind, LargeBody]
"""A body for small arrays, the kind of the result, and the body for large arrays."""

SAME, FLOATING, TO_BOOL, TO_REAL = "same", "floating", "to_bool", "to_real"
"""Promotion rules: the operands' common dtype; integers become the default float; the result is bool; the result of
complex operands is real."""

_KEEP_DTYPE = (SAME, TO_REAL)
"""The rules of the functions of one tensor that map integers to integers: their `out=` must have the result's dtype."""

_HALF = (float16, bfloat16)

_ON_SHORT_PATH = frozenset({Tensor, float, int})
"""The operands that the short path takes without asking anybody."""


Complaints = Mapping[int, tuple[type[Exception], str]]
NO_COMPLAINTS: Complaints = MappingProxyType({})


class Elementwise(Op):
    """One elementwise op: its body, its promotion rule and what it records."""

    axes = ELEMENTS
    complaints: Complaints = NO_COMPLAINTS
    """The errors for refused categories of dtypes, where PyTorch has some of its own for this op."""
    first_is_tensor = False
    """Whether the first of two operands may not be a number."""
    exact_numbers = False
    """Whether a second operand that is a number, or a tensor without dimensions, keeps its own precision beside a
    tensor of half precision: elsewhere it is rounded like the tensor."""
    keeps_halves = False
    """Whether half precision is not computed in float32: the distance of neighbouring numbers matters."""
    truth_only = False
    """Whether `out=` must be of dtype bool."""
    takes_out = True
    """Whether there is an `out=` at all."""
    tensors_only = False
    """Whether neither of them may be a number."""
    numbers_alone = False
    """Whether both of them may be numbers."""
    node_class: type[OpNode] | None
    record: Recorder
    """Makes the node of a call and puts it on the output."""
    record_plainly: Recorder
    """Makes the node of a call in plain modes, without asking about them."""
    readers_of_first: tuple[int, ...]
    """The operands whose derivatives read the first one."""
    in_place: _InPlace
    """As which profilers know its in-place form."""
    function: ElementwiseFunction
    """What users call."""
    stored: Callable[[Tensor, Any], Tensor] | None = None
    """What a recorded change in place computes instead: results of the target's dtype, which have a derivative."""
    change: Callable[..., Tensor]
    """Runs the in-place form for functions of the package that users call."""
    short: Callable[..., Tensor] | None = None
    """Runs the op by the short path where that is open, on operands as they are: autocast is the caller's affair."""

    def __init__(
        self,
        name: str,
        body: Body,
        rule: str,
        node: str | None,
        inputs: tuple[str, ...],
        formulas: dict[str, Formula],
        refuses: tuple[int, ...],
        op_name: str | None = None,
        autocast: Autocast | None = None,
    ) -> None:
        self.enter(op_name or name)
        self.title = name
        """What users call it: ops that are forms of one function have names of their own."""
        self.body = self.kernel = body
        self.rule = rule
        self.parameters = self.tensor_names = inputs
        self.tensor_positions = tuple(range(len(inputs)))
        self.refuses = refuses
        self.table: dict[Kind, Entry] = {}
        self.mixed: dict[tuple[Kind, Kind], tuple[Any, Any, Any]] = {}
        """For kinds that meet: the dtypes to which the operands are converted, if they are, and the body."""
        self.grad_inputs = tuple(position for position, each in enumerate(inputs) if each in formulas)
        self._recorded_as = node, formulas
        rules = rules_of(name, autocast)
        self.ruled = None if rules is None else Ruled(rules, operands)
        """By what autocast's table knows it, if that has a rule for it on some type of device."""
        ELEMENTWISE_DEVICES.update(rules or ())

    def __getattr__(self, attribute: str) -> Any:
        # Made when the op is first recorded: most programs record few of the ops.
        if attribute == "node_class":
            node, formulas = self._recorded_as
            names = self.differentiable_names()
            self.node_class = node_class(node, names, formulas, None, self) if node else None
            return self.node_class
        if attribute == "record" or attribute == "record_plainly":
            made, plainly = self.node_class, attribute == "record_plainly"
            recorder = nothing if made is None else elementwise_recorder(self, made, self.grad_inputs, plainly)
            setattr(self, attribute, recorder)
            return recorder
        if attribute == "readers_of_first":
            given, (_, formulas) = self.parameters, self._recorded_as
            readers = [each for each in given if each in formulas and given[0] in formula_names(formulas[each])]
            self.readers_of_first = tuple(map(given.index, readers))
            return self.readers_of_first
        if attribute == "change":
            slow = functools.partial(change, self)
            self.change = slow if len(self.parameters) == 1 else short_change(self, slow, _write, 2)
            return self.change
        if attribute == "in_place":
            self.in_place = _InPlace(self)
            return self.in_place
        raise AttributeError(attribute)

    def differentiable_names(self) -> list[str]:
        """The operands that have a derivative."""
        return [self.parameters[position] for position in self.grad_inputs]

    def compute_dtype(self, common: dtype) -> dtype:
        """The dtype in which operands whose common dtype is `common` meet."""
        if common.category in self.refuses:
            if common.category in self.complaints:
                kind_of_error, message = self.complaints[common.category]
                raise kind_of_error(message)
            raise NotImplementedError(f'"{self.title}_cpu" not implemented for {LEGACY_NAMES[common]!r}')
        return DEFAULTS.float if self.rule == FLOATING and common.category < FLOAT else common

    def check_target(self, target: dtype, operands: tuple[Any, ...]) -> None:
        """Refuse operands whose common dtype `target` cannot hold: PyTorch says so before it looks for a kernel."""
        if self.truth_only and target is not bool_:
            raise RuntimeError(f"{self.title} does not support non-boolean outputs: out has {target}.")
        if self.refuses and self.rule in (SAME, FLOATING):
            common = result_type_of(*operands)
            if common.category in self.refuses and common.category not in self.complaints:
                check_castable(common, target, self.title)

    def result_dtype(self, computed: dtype) -> dtype:
        """The dtype of the result."""
        if self.rule == TO_BOOL:
            return bool_
        return computed.to_real() if self.rule == TO_REAL else computed

    def entry(self, kind: Kind) -> Entry:
        """The prepared body for operands of `kind`, and the kind of the result."""
        computed = self.compute_dtype(kind.dtype)
        REPRODUCIBILITY.refuse_complex_body(self.name, computed.is_complex)
        if not (kind.is_cpu or kind.dataless):
            REPRODUCIBILITY.refuse_at_machine(self.name, "it runs on a device with functions of its own")
        body = self._prepared(kind.dtype, computed)
        result = kind_of(self.result_dtype(computed), kind.device)
        given = kind.dtype.numpy
        met = given if computed is kind.dtype else computed.numpy
        scalar = _not_in_single if self.keeps_halves and kind.dtype in _HALF else self.body
        large = LargeBody(kind.backend, body, scalar, given, met, result.dtype.numpy, self.exact_numbers)
        at_any_size = kind.backend.costs_per_call or self.body in AT_ANY_SIZE or REPRODUCIBILITY.product is not None
        entry = large if at_any_size else body, result, large
        if kind.dataless or is_packed(kind.dtype):
            return entry  # nothing is computed, or it is refused, which the longer path does with the reason
        if self.rule != FLOATING or kind.dtype.category >= FLOAT:
            self.table[kind] = entry  # the default dtype may change: entries that depend on it are not kept
        return entry

    def _prepared(self, given: dtype, computed: dtype) -> Body:
        body = self.body
        if computed.wide is not None:
            exact = self.exact_numbers and computed is bfloat16
            numbers, result_type = (float32 if exact else computed).numpy, self.result_dtype(computed).numpy
            return lambda *arrays: as_type(
                as_array(body(*[widened(_as_array(each, numbers)) for each in arrays])), result_type
            )
        if computed in _HALF and not self.keeps_halves:
            half, single, result_type = computed.numpy, float32.numpy, self.result_dtype(computed).numpy
            number = single.type if self.exact_numbers else lambda each: single.type(half.type(float(each)))
            return lambda *arrays: as_array(
                body(*[each.astype(single) if type(each) in ARRAY_CLASSES else number(each) for each in arrays])
            ).astype(result_type, copy=False)
        if computed is not given:
            target = computed.numpy
            return lambda *arrays: body(
                *[each.astype(target) if type(each) in ARRAY_CLASSES else each for each in arrays]
            )
        return body

    def __call__(self, *operands: Any) -> Tensor:
        """Run the op on tensors and numbers, as interpreters do."""
        if self.short is not None and _ON_SHORT_PATH.issuperset(map(type, operands)):
            return self.short(*operands)
        return run_unary(self, operands[0]) if len(operands) == 1 else run_binary(self, *operands)

    def saves_first(self, operands: tuple[Any, ...]) -> bool:
        """Whether the derivative of this call would read the first operand."""
        for position in self.readers_of_first:
            each = operands[position]
            if isinstance(each, Tensor) and each.requires_grad:
                return True
        return False


class _InPlace(Op):
    """The in-place form of an elementwise op, to those who watch: it has a name, and takes the operands of the op."""

    def __init__(self, op: Elementwise) -> None:
        self.name, self.in_place_of = f"{op.name}_", op
        self.kernel, self.parameters, self.tensor_positions = op.kernel, op.parameters, op.tensor_positions
        self.writes = (0,)


def _not_in_single(*operands: Any) -> Any:
    """The body of an op that generated code, which computes half precision in float32, has to leave alone."""
    raise TypeError("half precision is not computed in float32")


def _finish(op: Elementwise, operands: tuple[Any, ...], array: Any, kind: Kind) -> Tensor:
    """From a kernel's result to a tensor."""
    if type(array) is not np.ndarray:
        array = kind.backend.asarray(array)
    counter: Any = None if THREAD.modes.inference else [0, None]
    return _recorded(op, operands, Tensor._from_parts((array, kind, counter)))


def _recorded(op: Elementwise, operands: tuple[Any, ...], output: Tensor) -> Tensor:
    """`output` with what the modes want of the call that made it."""
    modes = THREAD.modes
    if modes.interpreters and modes.interpreters[-1].records_inside:
        return output
    records = modes.grad and output._kind.differentiable and not modes.inference
    needed = records and any([isinstance(each, Tensor) and each.requires_grad for each in operands])  # noqa: C419 (quicker)
    if modes.plain:
        if needed:
            op.record_plainly(operands, output)
    else:
        if needed:
            op.record(operands, output)
        after(op, operands, [output], modes)
    return output


class ElementwiseFunction(Protocol):
    """What `unary` and `binary` return: the public function, and the op that it runs."""

    __name__: str
    __qualname__: str
    op: Elementwise

    def __call__(self, *operands: Any, out: Tensor | None = None) -> Tensor:
        """The op of tensors and numbers."""


def node_name(name: str) -> str:
    """What the node of an op is called, where PyTorch has no other name for it."""
    return f"{name.replace('_', ' ').title().replace(' ', '')}Backward0"


def unary(
    name: str,
    body: Body,
    *aliases: str,
    rule: str = SAME,
    node: str | None = None,
    derivative: Formula | None = None,
    refuses: tuple[int, ...] = (),
    inplace: bool = True,
    method: bool = True,
    autocast: Autocast | None = None,
    takes_out: bool = True,
    truth_only: bool = False,
    complaints: Complaints = NO_COMPLAINTS,
    doc: str = "",
) -> ElementwiseFunction:
    """Publish an elementwise op of one tensor. `derivative` takes the gradient and `self` and/or `result`.

    `takes_out`, `truth_only`, `complaints`: see `Elementwise`.
    """
    formulas = {} if derivative is None else {"self": derivative}
    if node is None and derivative is not None:
        node = node_name(name)
    op = Elementwise(name, body, rule, node, ("self",), formulas, refuses, autocast=autocast)
    op.takes_out, op.truth_only, op.complaints = takes_out, truth_only, complaints

    def called(shown: str, owner: Namespace | None) -> Callable[..., Tensor]:
        def slow(input: Tensor, out: Tensor | None) -> Tensor:
            if out is not None and not op.takes_out:
                raise TypeError(f"{shown}() got an unexpected keyword argument 'out'")
            if type(input) not in DIRECT_TYPES and has_override((input,)):
                asked: Any = function
                answer: Tensor = run_override(asked, (input,), (input,), {} if out is None else {"out": out})
                return answer
            if not isinstance(input, Tensor):
                raise TypeError(f"{shown}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
            try:
                result = run_unary(op, input if op.ruled is None or out is not None else op.ruled(input)[0])
            except Exception as error:
                explain(error, shown, {"input": input, "out": out})
                raise
            if out is None:
                return result
            if op.truth_only and isinstance(out, Tensor):
                op.check_target(out._kind.dtype, (input,))
            if rule in _KEEP_DTYPE and isinstance(out, Tensor) and not input._kind.dtype.is_complex:
                _check_same_dtype(result._kind.dtype, out._kind.dtype)
            return write_out(result, out, (input,))

        function = short_unary(op, shown, slow, casts=True, owner=owner)
        return function

    op.short = short_unary(op, name, lambda input, out: run_unary(op, input), casts=False)
    return _published(op, called, (name, *aliases), doc, True, method, inplace)


def binary(
    name: str,
    body: Body,
    *aliases: str,
    rule: str = SAME,
    node: str | None = None,
    refuses: tuple[int, ...] = (),
    inplace: bool = True,
    method: bool = True,
    public: bool = True,
    operands: tuple[str, str] = ("self", "other"),
    tensors_only: bool = False,
    first_is_tensor: bool = False,
    numbers_alone: bool = False,
    exact_numbers: bool = False,
    keeps_halves: bool = False,
    complaints: Complaints = NO_COMPLAINTS,
    doc: str = "",
    op_name: str | None = None,
    autocast: Autocast | None = None,
    **formulas: Formula,
) -> ElementwiseFunction:
    """Publish an elementwise op of two operands, tensors or numbers. Formulas are those of `operands`.

    `op_name` tells the op from others of the same function, where that has several. `tensors_only` to `complaints`: see
    `Elementwise`.
    """
    if node is None and formulas:
        node = node_name(name)
    op = Elementwise(name, body, rule, node, operands, formulas, refuses, op_name, autocast)
    op.tensors_only, op.first_is_tensor, op.numbers_alone = tensors_only, first_is_tensor, numbers_alone
    op.exact_numbers, op.keeps_halves, op.complaints = exact_numbers, keeps_halves, complaints

    def called(shown: str, owner: Namespace | None) -> Callable[..., Tensor]:
        def slow(input: Any, other: Any, out: Tensor | None) -> Tensor:
            if not (type(input) in DIRECT_TYPES and type(other) in DIRECT_TYPES) and has_override((input, other)):
                asked = function if public else resolved(FUNCTIONS[""].get(name, function))
                kwargs = {} if out is None else {"out": out}
                answer: Tensor = run_override(asked, (input, other), (input, other), kwargs)
                return answer
            try:
                if out is None:
                    return run_binary(op, *((input, other) if op.ruled is None else op.ruled(input, other)))
                if isinstance(out, Tensor) and (isinstance(input, Tensor) or isinstance(other, Tensor)):
                    op.check_target(out._kind.dtype, (input, other))
                return write_out(run_binary(op, input, other), out, (input, other))
            except Exception as error:
                explain(error, shown, {"input": input, "other": other, "out": out})
                raise

        function = short_binary(op, shown, slow, casts=True, owner=owner)
        return function

    op.short = short_binary(op, name, lambda input, other, out: run_binary(op, input, other), casts=False)
    return _published(op, called, (name, *aliases), doc, public, method, inplace)


def _published(
    op: Elementwise,
    called: Callable[[str, Namespace | None], Callable[..., Tensor]],
    names: tuple[str, ...],
    doc: str,
    public: bool,
    method: bool,
    inplace: bool,
) -> ElementwiseFunction:
    """The function of an op under its names: those without a namespace are methods too. `called` makes it by a name."""
    first = names[0]
    plain = [each for each in names if "." not in each]

    def further(alias: str) -> Function:
        return written_for(lambda owner: _described(op, called(shown_name(alias), owner), alias, doc))

    function = op.function = cast(ElementwiseFunction, further(first))

    def changing(name: str) -> Function:
        return _changing(op, name)

    publish(function, first, further, names if public else (), plain if method else ())
    if inplace:
        inplace_names = [f"{each}_" for each in plain]
        publish(changing(f"{first}_"), f"{first}_", changing, inplace_names, inplace_names)
    return function


def run_unary(op: Elementwise, input: Tensor) -> Tensor:
    """An elementwise op of one tensor of any dtype: the long path."""
    modes = THREAD.modes
    if modes.watcher is not None:
        seen: Tensor = watched(op, (input,), modes, op.short)
        return seen
    if modes.interpreters:
        return _recorded(op, (input,), interpret(op, (input,), modes))
    if input._is_wrapper:
        spread: Tensor = at_level(op, (input,), input)
        return spread
    kind = input._kind.plain
    prepared, result_kind, large = op.table.get(kind) or op.entry(kind)
    if kind.dataless:
        from .abstract.meta import arranged_dataless

        array = arranged_dataless(input._array.shape, result_kind.dtype.numpy, input._array)
    else:
        array = (prepared if input._array.size < LARGE else large)(content(input))
    return _finish(op, (input,), array, result_kind)


def run_binary(op: Elementwise, left: Any, right: Any) -> Tensor:
    """An elementwise op of two operands of any dtype, tensors or numbers: the long path."""
    modes = THREAD.modes
    if modes.watcher is not None:
        seen: Tensor = watched(op, (left, right), modes, op.short)
        return seen
    if modes.interpreters:
        return _recorded(op, (left, right), interpret(op, (left, right), modes))
    for each in (left, right):
        if isinstance(each, Tensor) and each._is_wrapper:
            spread: Tensor = at_level(op, (left, right), each)
            return spread
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        place = left._kind.device
        if right._kind.device is not place:
            place = leading(op.title, left, right)._kind.device
        if left._array.ndim and right._array.ndim:
            common = promote_types(left._kind.dtype, right._kind.dtype)
        else:
            common = result_type_of(left, right)
    else:
        place = _device_of_tensor(op, left, right)
        common = result_type_of(left, right)
    kind = kind_of(common, place)
    body, result_kind, large = op.table.get(kind) or op.entry(kind)
    if place.dataless:
        from .abstract.meta import arranged_dataless

        operands = [each._array for each in (left, right) if isinstance(each, Tensor)]
        try:
            shape = joint_shape(*[each.shape for each in operands])
            array = arranged_dataless(shape, result_kind.dtype.numpy, *operands)
        except ValueError:
            raise shape_error(op.title, left, right) from None
    else:
        numbers = op.compute_dtype(common)  # of an integer quotient, numbers become floats at once
        first = _converted(left, common, numbers)
        if op.exact_numbers and numbers in _HALF and (exact := _exact_number(right, common)) is not None:
            second: Any = exact
            if first.size >= LARGE:
                body = large
        else:
            second = _converted(right, common, numbers)
            if (first.size >= LARGE or grows(first, second)) and first.dtype is second.dtype:
                body = large
        try:
            array = body(first, second)
        except ValueError:
            raise shape_error(op.title, left, right) from None
        if is_array(array) and array.ndim > 1:
            array = arranged(array, *[each._array for each in (left, right) if isinstance(each, Tensor)])
        if isinstance(left, Tensor) and isinstance(right, Tensor) and left._array.ndim and right._array.ndim:
            _remember_mixed(op, left._kind, right._kind, kind)
    return _finish(op, (left, right), array, result_kind)


def _remember_mixed(op: Elementwise, left: Kind, right: Kind, common: Kind) -> None:
    """Let the next tensors of these kinds meet without looking for what they have in common."""
    kinds = (left, right, common)
    if common not in op.table or any(each.indirect or each.plain is not each for each in kinds):
        return
    if common.backend.costs_per_call:
        _, result, large = op.table[common]
        together = MixedBody(common.backend, large, (left.dtype.numpy, right.dtype.numpy))
        op.mixed[left, right] = None, None, (together, result, together)
        if left.differentiable and left not in op.table:
            op.entry(left)  # a call looks there first
    elif all(each.is_cpu for each in kinds):
        wanted = common.dtype.numpy
        first, second = (None if each is common else wanted for each in (left, right))
        op.mixed[left, right] = first, second, op.table[common]


def _device_of_tensor(op: Elementwise, left: Any, right: Any) -> Any:
    """Where the one tensor among a tensor and a number is; a TypeError for anything else."""
    for position, operand in enumerate((left, right), 1):
        if not isinstance(operand, Tensor) and (op.tensors_only or not is_number(operand)):
            word = "input" if position == 1 else "other"
            kinds = "Tensor" if op.tensors_only else "Tensor or number"
            raise TypeError(
                f"{op.title}(): argument '{word}' (position {position}) must be {kinds}, not {type(operand).__name__}"
            )
    source = left if isinstance(left, Tensor) else right
    if op.numbers_alone and not isinstance(source, Tensor):
        return CPU
    if not isinstance(source, Tensor) or (op.first_is_tensor and not isinstance(left, Tensor)):
        raise TypeError(f"{op.title}(): argument 'input' (position 1) must be Tensor, not {type(left).__name__}")
    return source._kind.device


def _converted(operand: Any, common: dtype, numbers: dtype) -> Any:
    if isinstance(operand, Tensor):
        array = content(operand)
        if array.dtype is common.numpy:
            return array
        narrow = common.wide is not None or operand._kind.dtype.wide is not None
        return as_type(array, common.numpy) if narrow else array.astype(common.numpy)
    if numbers.category == INTEGER:
        return np.asarray(int(operand)).astype(numbers.numpy)  # wraps around, as PyTorch does
    if numbers.category == COMPLEX:
        return as_type(np.asarray(complex(operand)), numbers.numpy)
    number = np.asarray(operand)
    return number.astype(numbers.numpy) if numbers.wide is None else as_type(number, numbers.numpy)


def _exact_number(operand: Any, common: dtype) -> float | None:
    """A number, or the one element of a tensor that `common` would round; None for what is neither."""
    if not isinstance(operand, Tensor):
        return float(operand)
    kind = operand._kind
    if operand._array.ndim or kind.dtype is common or kind.device is not CPU:
        return None
    return float(widened(content(operand)))


def _as_array(operand: Any, array_type: Any) -> Any:
    return operand if is_array(operand) else as_type(np.asarray(operand), array_type)


def _changing(op: Elementwise, name: str) -> Callable[..., Tensor]:
    """The in-place form of the function of an op."""

    def change_one(input: Tensor) -> Tensor:
        if type(input) not in DIRECT_TYPES and has_override((input,)):
            return run_override(change_one, (input,), (input,), {})
        return change(op, input)

    def slow(input: Tensor, other: Any) -> Tensor:
        if type(input) not in DIRECT_TYPES and has_override((input, other)):
            return run_override(change_first, (input, other), (input, other), {})
        try:
            return change(op, input, other)
        except Exception as error:
            explain(error, name, {"input": input, "other": other})
            raise

    change_first = short_change(op, slow, _write, 1)
    inplace: Callable[..., Tensor] = change_one if len(op.parameters) == 1 else change_first
    inplace.__name__ = name
    doc = f"In-place form of `{op.title}`."
    inplace.__doc__ = of_elementwise(doc, name, len(op.parameters), takes_out=False, original=op.title)
    return at_home(inplace, name)


def _write(entry: Entry, target: Any, *operands: Any) -> None:
    """Compute into an array that may be an operand."""
    body, _, large = entry
    if (body is large or target.size >= LARGE) and large.into(target, *operands):
        return
    plain = large.plain
    if type(plain) is np.ufunc and (body is not large or REPRODUCIBILITY.product is None):
        plain(*operands, target)
    else:
        result = body(*operands)
        if result.shape != target.shape:  # which `copyto` would hide where the result has ones in front
            raise ValueError("the operands have another shape than what they are to be written to")
        np.copyto(target, result, casting="unsafe")


def change(op: Elementwise, target: Tensor, *others: Any) -> Tensor:
    """Run `op` with `target` as first operand and as result: the long path."""
    if not isinstance(target, Tensor):
        raise TypeError(f"{op.title}_(): argument 'input' (position 1) must be Tensor, not {type(target).__name__}")
    modes = THREAD.modes
    if modes.watcher is not None:
        seen: Tensor = watched(op.in_place, (target, *others), modes, op.change)
        return seen
    array = target._array
    other: Any = others[0] if others else None
    if others and (other is None or (op.tensors_only and not isinstance(other, Tensor))):
        kinds = "Tensor" if op.tensors_only else "Tensor or number"
        raise TypeError(f"{op.title}_(): argument 'other' (position 1) must be {kinds}, not {type(other).__name__}")
    if target._requires_grad or target._view is not None or target._counter is None:
        check_writable(target, isinstance(other, Tensor) and other.requires_grad)
    if array.base is not None:  # memory of its own never overlaps itself
        check_no_overlap(target)
    entry = op.table.get(target._kind)
    if (
        entry is None
        or entry[1] is not target._kind
        or not modes.plain
        or (other is not None and not (type(other) in PLAIN_TYPES and other._kind is target._kind))
    ):
        if isinstance(other, Tensor) and other._kind.indirect and has_override(others):  # a sparse one
            own = resolved(METHODS[f"{op.title}_"])
            changed: Tensor = run_override(own, (target, other), (target, other), {})
            return changed
        if op.refuses and (isinstance(other, Tensor) or is_number(other)):
            op.check_target(target._kind.dtype, (target, other))
        return run_inplace(op.stored if op.stored and modes.grad else op.function, op.title, target, others, {})
    if other is not None and other is not target and (array.base is not None or other._array.base is not None):
        check_partial_overlap(target, other)
    node = None
    if modes.grad and (target.requires_grad or (other is not None and other.requires_grad)):
        content = array.copy("K") if op.saves_first((target, *others)) else array
        before = version_before(target, content, target._edge())
        node = op.record((before, *others), target, made=False)
    operands = (array,) if other is None else (array, other._array)
    try:
        _write(entry, array, *operands)
    except ValueError:
        raise _inplace_error(op, target, other) from None
    end_change(target, node)
    return target


def _inplace_error(op: Elementwise, target: Tensor, other: Tensor) -> Exception:
    """What NumPy's ValueError means, which is all that the quick way to write in place hears."""
    if not target._array.flags.writeable:
        return ValueError(
            f"{op.title}_(): the tensor is read-only: it lies over memory that may not be written, such as bytes or a "
            "read-only NumPy array. clone() gives one with memory of its own"
        )
    try:
        shape = joint_shape(target._array.shape, other._array.shape)
    except ValueError:
        return shape_error(op.title, target, other)
    return RuntimeError(
        f"output with shape {list(target._array.shape)} doesn't match the broadcast shape {list(shape)}: "
        f"{op.title}_ cannot change the shape of the tensor that it writes to"
    )


def _check_same_dtype(result: dtype, out: dtype) -> None:
    if out is not result:
        raise RuntimeError(
            f"Found dtype {LEGACY_NAMES[out]} but expected {LEGACY_NAMES[result]}: out= must have the result's dtype"
        )


def _described(op: Elementwise, function: Callable[..., Tensor], name: str, doc: str) -> Function:
    at_home(function, name)
    published = cast(ElementwiseFunction, written(function))
    published.__name__ = shown_name(name)
    published.__doc__ = of_elementwise(doc, name, len(op.parameters), takes_out=True, original=op.title)
    published.op = op
    return function
