"""From tensors to arrays and back: the one way in which primitive ops run and are recorded.

A primitive is a kernel on arrays together with the derivative formulas of its inputs:

    @primitive("SinBackward0", self=lambda grad, self: grad * self.cos())
    def sin(self: Array):
        return np.sin(self)

Parameters annotated `Array`, `Array | None` or `list[Array]` are tensors for the caller and arrays for the kernel. A
formula is named after the input that it differentiates; it takes `grad`, the gradient of the output, and then, by name,
whatever it needs: inputs, arguments, `result` (or `result0`, `result1`, ...), or only a property of an input, as in
`self_sym_sizes` (its shape) or `self_dtype`. What it names is what the graph saves, and only if that input needs a
gradient. Formulas work on tensors, with Flambeau's own ops, so that derivatives have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from .._core.arrays.lazy_signs import content, is_neg, marked
from .._core.arrays.narrow import run_widened
from .._core.device import CPU, is_fake
from .._core.modes import THREAD
from .._core.node import Node, OpNode
from .._core.process.caller import GENERATED, PACKAGE
from .._core.process.reproducibility import REPRODUCIBILITY
from .._core.slots import SLOTS
from .._core.tensor import DEFAULT, INFERENCE, MULTI_OUTPUT, NO_GRAD, Tensor, View
from .axes import ELEMENTS_OF_FIRST, Axes
from .call import results
from .call.primitive import CALLS, short_call
from .call.results import any_needs_gradient, fresh
from .compiled_body import BODIES
from .gradients.derivative_code import first_apply
from .gradients.recorder import PROPERTIES, Recorder, nothing, primitive_recorder
from .interpreter import at_level, interpret, watched
from .op import Array, Formula, Kernel, Op, name_of_kernel, parameter_names, tensor_parameters

__all__ = ["Array", "Formula", "Kernel", "Primitive", "fresh", "primitive", "several"]

P = ParamSpec("P")
Results = TypeVar("Results")


class Primitive(Op, Generic[P, Results]):
    """A kernel, its derivative formulas, and the node class that records it. Call it with tensors.

    `P` are the parameters of the kernel, which are those of a call, with tensors for arrays; `Results` is what a call
    returns: a tensor, or a tuple of them.
    """

    node_class: type[OpNode] | None
    record: Recorder
    """Makes the node of a call and puts it on its outputs."""
    record_plainly: Recorder
    """Makes the node of a call in plain modes, without asking about them."""
    calls = 0
    """How often it was called the long way."""

    def __init__(
        self,
        kernel: Callable[P, Any],
        node: str | None,
        formulas: dict[str, Formula],
        joint: Formula | None,
        view: bool,
        results: tuple[str, ...] = (),
        differentiable: tuple[str, ...] | None = None,
        name: str | None = None,
    ) -> None:
        self.enter(name or name_of_kernel(kernel))
        self.results = results
        self.kernel = kernel
        self.is_view = self.makes_windows = view
        self.parameters, self.tensor_positions, self.list_position = tensor_parameters(kernel)
        tensor_names = [self.parameters[i] for i in sorted((*self.tensor_positions, *self._list()))]
        self.tensor_names = tuple(tensor_names)
        if unknown := formulas.keys() - set(tensor_names):
            raise TypeError(f"{self.name}: formulas for {sorted(unknown)}, which are no tensor parameters")
        # Edges exist for the inputs that have a derivative; a joint formula is about all of them, unless it says which.
        with_edges = (differentiable or tensor_names) if joint is not None else formulas
        self.grad_positions = tuple(
            position
            for position in sorted((*self.tensor_positions, *self._list()))
            if self.parameters[position] in with_edges
        )
        self._recorded_as = node, formulas, joint
        self.__doc__ = kernel.__doc__

    def __getattr__(self, attribute: str) -> Any:
        # Both are made when the op is first recorded: most programs record few of the ops.
        if attribute == "node_class":
            node, formulas, joint = self._recorded_as
            names = self.differentiable_names()
            self.node_class = node_class(node, names, formulas, joint, self) if node else None
            return self.node_class
        if attribute == "record" or attribute == "record_plainly":
            made, given = self.node_class, (self.grad_positions, self.results, attribute == "record_plainly")
            recorder = nothing if made is None else primitive_recorder(self, made, *given)
            setattr(self, attribute, recorder)
            return recorder
        if attribute == "watched_call":
            call = short_call(self, Primitive.__call__, watched=True)
            setattr(type(self), attribute, call)  # a class of its own, whose only instance this is
            return call.__get__(self)
        raise AttributeError(attribute)

    def differentiable_names(self) -> list[str]:
        """The inputs that have a derivative."""
        return [self.parameters[position] for position in self.grad_positions]

    def _list(self) -> tuple[int, ...]:
        return () if self.list_position is None else (self.list_position,)

    def __call__(self, *given: P.args, **named: P.kwargs) -> Results:
        if named:
            raise TypeError(f"{self.name}() takes its arguments by position, not {', '.join(named)} by name")
        args: tuple[Any, ...] = given
        modes = THREAD.modes
        if modes.watcher is not None:
            seen: Results = watched(self, args, modes)
            return seen
        if modes.plain and self.calls < CALLS:
            self.count_call()
        arrays = list(args)
        first: Tensor | None = None
        kind: Any = None
        indirect = False
        tensors: list[Tensor] = []
        for position in self.tensor_positions:
            tensor = args[position]
            if tensor is None:
                continue
            if not isinstance(tensor, Tensor):
                if hasattr(tensor, "traced"):  # a formula is being traced
                    return cast(Results, tensor.traced(self.kernel, args))
                raise TypeError(self._wrong_type(position, tensor))
            tensors.append(tensor)
            arrays[position] = tensor._array
            if tensor._kind is not kind:
                kind = tensor._kind
                if first is None:
                    first = tensor
                elif kind.device is not first._kind.device:
                    first = leading(self.name, first, tensor)
                indirect = indirect or kind.indirect
            if indirect and kind.indirect and not self.makes_windows and not modes.interpreters:
                arrays[position] = content(tensor)
        if self.list_position is not None:
            listed = args[self.list_position]
            tensors += listed
            for tensor in listed:
                if not isinstance(tensor, Tensor):
                    raise TypeError(self._wrong_type(self.list_position, tensor))
                if first is None:
                    first = tensor
                elif tensor._kind.device is not first._kind.device:
                    first = leading(self.name, first, tensor)
                indirect = indirect or tensor._kind.indirect
            if not modes.interpreters:
                arrays[self.list_position] = [content(each) if each._kind.indirect else each._array for each in listed]
        assert first is not None, f"{self.name} needs a tensor"
        needs_grad = modes.grad and not modes.inference and any_needs_gradient(tensors)
        if modes.interpreters:
            computed = interpret(self, args, modes)
            if modes.interpreters[-1].records_inside:
                return cast(Results, computed)
            many = type(computed) is tuple
            outputs = list(computed) if many else [computed]
            if self.is_view:
                for output in outputs:
                    remember_base(output, first, many)
        elif first._is_wrapper:
            return cast(Results, at_level(self, args, first))
        else:
            if indirect:
                computed = self._run_indirectly(arrays, first._kind.device)
            else:
                kind = first._kind
                computed = (kind.runs.get(self) or kind.backend.prepare(self))(*arrays)
            many = type(computed) is tuple or type(computed) is list
            if many:
                outputs = [self._wrap(array, first, modes, True) for array in computed]
            else:
                outputs = [self._wrap(computed, first, modes, False)]
        if modes.plain:
            if needs_grad:
                self.record_plainly(args, outputs)
        else:
            if needs_grad:
                self.record(args, outputs)
            after(self, args, outputs, modes)
        return tuple(outputs) if many else outputs[0]  # type: ignore[return-value]  # as many as the kernel returned

    def count_call(self) -> None:
        """Let an op that is called often have a function of its own: see `call/primitive.py`."""
        if self.calls < CALLS - 1:
            self.calls += 1
            return
        cls = type(self)
        has_one = self.list_position is None or not self.tensor_positions
        if has_one and cls._wrap is Primitive._wrap and cls.__call__ is Primitive.__call__:
            own = short_call(self, Primitive.__call__)
            self.__class__ = type(cls.__name__, (cls,), {"__call__": own, "__doc__": self.__doc__})
        self.calls = CALLS  # last: if an interrupt ends this call, the next one writes the function

    several_results: Any = results.several
    """The results of a kernel that has several, from an ordinary call; the arguments if that is to be recorded."""
    _windows: Any = results.windows
    """Several results that may be views of a source."""

    def _run_indirectly(self, arrays: list[Any], place: Any) -> Any:
        """The results where a kernel cannot read the arrays as they are; one that makes windows does not read them."""
        if self.makes_windows or (self.reads_narrow and not place.dataless):
            return REPRODUCIBILITY.kernel_of(self)(*arrays)
        if not place.dataless:
            return run_widened(REPRODUCIBILITY.kernel_of(self), arrays)
        from .abstract.meta import run_without_data

        return run_without_data(self, arrays, place)

    def _wrap(self, array: Any, source: Tensor, modes: Any, many: bool) -> Tensor:
        kind = source._kind
        if type(array) is not np.ndarray:
            array = kind.backend.asarray(array)
        if array.dtype is not source._array.dtype:
            kind = kind.beside[array.dtype]
            if self.makes_windows and is_neg(source._kind):
                kind = marked(kind, False, True)
        if self.is_view:
            return view_of(source, array, kind, many)
        counter: Any = None if modes.inference else [0, None]
        return Tensor._from_parts((array, kind if self.makes_windows else kind.plain, counter))

    def _wrong_type(self, position: int, value: Any) -> str:
        name = self.parameters[position]
        return (
            f"{self.name}(): argument '{'input' if name == 'self' else name}' (position {position + 1}) must be "
            f"Tensor, not {type(value).__name__}"
        )


def view_of(source: Tensor, array: Any, kind: Any, many: bool = False) -> Tensor:
    """A tensor over `array`, which is a window on the memory of `source`: versions are shared, the base remembered."""
    tensor = Tensor._from_parts((array, kind, source._counter))
    remember_base(tensor, source, many)
    return tensor


def remember_base(tensor: Tensor, source: Tensor, many: bool) -> None:
    """Note on a view of `source` what it is a view of, and how it was made."""
    modes = THREAD.modes
    counter = source._counter
    if counter is None:  # views of inference tensors are inference tensors
        return
    origin = source._view
    base = source if origin is None else origin.base
    if modes.inference:
        creation = INFERENCE
    elif not modes.grad:
        creation = NO_GRAD
    elif many:
        creation = MULTI_OUTPUT
    else:
        creation = DEFAULT if origin is None else origin.creation
    tensor._view = View(base, counter[0], creation)


def node_class(
    name: str, inputs: Sequence[str], formulas: dict[str, Formula], joint: Formula | None, op: Any
) -> type[OpNode]:
    """The node class `name`, with a slot for each value that a formula takes."""
    entries = tuple((formulas[each], formula_names(formulas[each])) if each in formulas else None for each in inputs)
    together = None if joint is None else (joint, parameter_names(joint)[2:])
    saved: dict[str, None] = dict.fromkeys(together[1] if together else ())
    for entry in entries:
        if entry is not None:
            saved.update(dict.fromkeys(entry[1]))
    body = {
        "__slots__": tuple(saved),
        "formulas": entries,
        "joint": together,
        "saved_names": tuple(saved),
        "held_names": tuple(name for name in saved if not name.endswith(tuple(PROPERTIES))),
        "list_input": None
        if op.list_position is None or op.parameters[op.list_position] not in inputs
        else inputs.index(op.parameters[op.list_position]),
        "op": op,
        "prefix": "torch::autograd::" if name == "NotImplemented" else "",
        "apply": first_apply,
    }
    return type(name, (OpNode,), body)


def formula_names(formula: Formula) -> tuple[str, ...]:
    """What `formula` takes besides the gradient."""
    return parameter_names(formula)[1:]


def primitive(
    node: str | None,
    *,
    view: bool = False,
    joint: Formula | None = None,
    results: tuple[str, ...] = (),
    differentiable: tuple[str, ...] | None = None,
    op_name: str | None = None,
    draws: bool = False,
    fuses: bool = True,
    reads_narrow: bool = False,
    shape: Kernel | None = None,
    axes: Axes | None = None,
    **formulas: Formula,
) -> Callable[[Callable[P, Any]], Primitive[P, Tensor]]:
    """Make the decorated kernel a `Primitive` that records nodes called `node`; None: it has no derivative.

    The op is called `op_name`, or else as the kernel is, less the underscore of a kernel with a public function.

    `results` names the outputs of a kernel that has several, so that formulas can ask for them by these names.
    `joint` is one formula for all inputs, or for those named `differentiable`. `draws`: it uses a generator. `fuses`:
    False where the formulas are never elementwise, and nobody need try to make one kernel of them. `reads_narrow`: the
    kernel takes bfloat16, complex32 and the 8-bit floats as they are. `shape` takes the kernel's arguments, arrays
    without data, and returns such results: for a kernel that has to read its own. `axes`: which dimensions are
    independent (`axes.py`); a kernel that is marked `@pointwise` need not say that its elements are.
    """

    def decorate(kernel: Callable[P, Any]) -> Primitive[P, Tensor]:
        op: Primitive[P, Tensor] = Primitive(kernel, node, formulas, joint, view, results, differentiable, op_name)
        op.draws, op.fuses, op.reads_narrow = draws, fuses, reads_narrow
        if shape is not None:
            op.shape = shape
        op.axes = axes or (ELEMENTS_OF_FIRST if kernel in BODIES else None)
        return op

    return decorate


def several(node: str | None, **options: Any) -> Callable[[Callable[P, Any]], Primitive[P, tuple[Tensor, ...]]]:
    """`primitive` for a kernel that returns a tuple of arrays."""
    return cast("Callable[[Callable[P, Any]], Primitive[P, tuple[Tensor, ...]]]", primitive(node, **options))


def after(op: Any, args: Sequence[Any], outputs: list[Tensor], modes: Any) -> None:
    """What the less common modes want to know of a finished op."""
    if modes.anomaly:
        note_traceback(outputs[0]._grad_fn)
    if modes.forward_level >= 0:
        SLOTS.propagate_tangents(op, args, outputs, modes.forward_level)


def note_traceback(node: Node | None) -> None:
    """Keep on a node the stack of the call that recorded it."""
    if node is not None:
        import traceback

        stack = traceback.extract_stack()
        while stack and stack[-1].filename.startswith((PACKAGE, GENERATED)):
            stack.pop()  # the user's own line comes last
        node.metadata.setdefault("traceback_", stack.format())


def leading(name: str, first: Tensor, second: Tensor) -> Tensor:
    """The one of two tensors on different devices that says where the result is: a number on the CPU may go along."""
    if first._kind.shown is second._kind.shown:  # a fake and a real one: there is nothing to compute with
        return first if first._kind.dataless else second
    if second._kind.shown is CPU and not second._array.ndim:
        return first
    if first._kind.shown is CPU and not first._array.ndim:
        return second
    from .abstract.fake import FakeTensorDeviceMismatchError

    refusal = FakeTensorDeviceMismatchError if is_fake(first._kind.device) else RuntimeError
    raise refusal(
        f"Expected all tensors to be on the same device, but found at least two devices, {first.device} and "
        f"{second.device}! (in {name}; move one of them with .to('{first.device}'))"
    )
