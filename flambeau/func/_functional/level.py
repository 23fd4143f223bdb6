"""The level of one `functionalize` call: tensors that change, made of values that do not.

What a program writes to is a `Memory`, which holds one value after the other. A `FunctionalTensor` is a window on a
memory, by the view ops that lead there. An op reads the values; one that writes becomes its functional form, and its
result the new value of the memory, from which the other windows are made again when they are next looked at. So the
interpreters outside of the level, and the derivatives, see a program without changes in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._core.device import CPU, strided
from ..._core.kind import kind_of_array
from ..._core.modes import THREAD
from ..._core.tensor import Tensor, new
from ..._dispatch.changes.functional_form import functional_form
from ..._dispatch.composite import Composite
from ..._dispatch.factory import constant
from ..._dispatch.op import Op
from ..._dispatch.public.return_types import named
from ..._dispatch.writer import Writer
from ..._ops.create.constants import filled
from ..._ops.index.subscript import index_put_operator
from ..._ops.tensor import copy
from .._level import Level, Wrapper, debug_unwrap
from .views import Step, view_op


class Memory:
    """What a tensor and its views have in common: the present value of all of it."""

    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.changes = 0


class FunctionalTensor(Wrapper):
    """A tensor of a function under `functionalize`: a window on a memory."""

    __slots__ = ("changes", "current", "memory", "steps")
    if TYPE_CHECKING:
        level: Functionalize
        memory: Memory
        steps: tuple[Step, ...]
        current: Tensor
        changes: int

    @property
    def value(self) -> Tensor:
        """The elements as they are now."""
        if self.changes != self.memory.changes:
            with self.level.outside():
                current = self.memory.value
                for step in self.steps:
                    current = step.taken(current, self.level.copies_views)
            self.current, self.changes = current, self.memory.changes
        return self.current

    @property
    def _array(self) -> Any:
        return self.value._array

    @_array.setter
    def _array(self, array: Any) -> None:
        """A wrapper has none of its own."""

    def write(self, changed: Tensor) -> None:
        """Let the window show `changed` from now on; called outside of the level."""
        sources = [self.memory.value]
        for step in self.steps[:-1]:
            sources.append(step.taken(sources[-1], self.level.copies_views))
        whole = changed
        for step, source in zip(reversed(self.steps), reversed(sources), strict=False):
            whole = step.undone(source, whole, self.level.copies_views)
        self.memory.value = whole = stored(self.memory.value, whole)
        self.memory.changes += 1
        if not self.steps:
            self.current, self.changes = whole, self.memory.changes

    # ----- what code above the ops asks of a tensor that stands for another ----------------------------------------

    def _before_change(self) -> Tensor:
        """What an out-of-place op reads where this tensor is about to change: values stay as they are."""
        return self

    def _filled_alike(self, shape: Sequence[int], kind: Any, value: Any) -> Tensor:
        return filled(tuple(shape), kind, value)

    def _become(self, other: Tensor) -> None:
        """Take the place of a view of this tensor."""
        assert isinstance(other, FunctionalTensor)
        self.memory, self.steps = other.memory, other.steps
        self.current, self.changes = other.current, other.changes

    def _resize(self, shape: tuple[int, ...]) -> None:
        """Take another shape, with the elements that there are."""
        with self.level.outside():
            self.memory = Memory(self.value.clone().resize_(shape))
        self.steps, self.current, self.changes = (), self.memory.value, 0

    def _one_by_one(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
        """There is one value only: it can be looked at, by the function that was to run on each of many."""
        return function.__wrapped__(*args, **options)  # type: ignore[attr-defined]

    def _custom_function(self, function: Any, args: Sequence[Any]) -> Any:
        """A user's `autograd.Function`: where it has a derivative, it is one function of the values."""
        level = self.level
        values = [level.front(each) for each in args]
        if not THREAD.modes.grad or not any(
            isinstance(each, Tensor) and debug_unwrap(each).requires_grad for each in values
        ):
            return NotImplemented
        with level.outside():
            return level.finished(function.apply(*values))

    def _refuse_reading(self) -> None:
        """There is one value only: it can be looked at."""

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        self._become(value if self.level.has(value) else self.level.wrapped(value))
        self._kind = value._kind


class Functionalize(Level):
    """The interpreter of one call of a function under `functionalize`."""

    def __init__(self, copies_views: bool) -> None:
        super().__init__()
        self.copies_views = copies_views

    def wrapped(self, value: Tensor) -> FunctionalTensor:
        return self.window(Memory(value), (), value)

    def window(self, memory: Memory, steps: tuple[Step, ...], current: Tensor) -> FunctionalTensor:
        """A tensor that sees `memory` by `steps`, at present as `current`."""
        tensor: FunctionalTensor = new(FunctionalTensor)
        tensor.level = self
        tensor.memory = memory
        tensor.steps = steps
        tensor.current = current
        tensor.changes = memory.changes
        tensor._kind = current._kind
        tensor._counter = None if current._counter is None else [0, None]
        tensor._output_nr = 0
        tensor._grad = None
        tensor._extra = None
        return tensor

    def front(self, tensor: Any) -> Any:
        return tensor.value if self.has(tensor) else tensor

    def finished(self, result: Any) -> Any:
        """The results of an op as tensors of this level; sparse ones, which have no views, stay as they are."""
        if isinstance(result, Tensor):
            return self.wrapped(result) if result.layout is strided else result
        if not isinstance(result, (tuple, list)):
            return result
        finished = [self.finished(each) for each in result]
        return finished if type(result) is list else named(type(result), finished)

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        if op.writes:
            assert isinstance(op, Writer)
            return self.changed(op, args)
        if op.is_view:
            return self.view(op, args)
        values = [self.behind(each) for each in args]
        if op.reads:
            return op(*values)
        if op.name in _BY_POSITION:
            return self.wrapped(_BY_POSITION[op.name](*values))
        if isinstance(op, Composite) and any(each.requires_grad for each in op.tensors_of(values)):
            with self:
                return op.decomposition(*args)
        return self.finished(op(*values))

    def behind(self, value: Any) -> Any:
        """What an op outside of the level is given for an argument."""
        if type(value) is not list and type(value) is not tuple:
            return self.front(value)
        found = [self.behind(each) for each in value]
        return found if type(value) is list else named(type(value), found)

    def view(self, op: Op, args: Sequence[Any]) -> Any:
        """Windows on the memory of the first argument; on that of a tensor from outside, they are from outside too."""
        source, *rest = args
        if not self.has(source):
            return op(*args)
        made = view_op(op, self.copies_views)(source.value, *rest)
        if type(made) is not tuple:
            return self.window(source.memory, (*source.steps, Step(op, rest, 0)), made)
        return tuple(
            [
                self.window(source.memory, (*source.steps, Step(op, rest, number)), each)
                for number, each in enumerate(made)
            ]
        )

    def changed(self, op: Writer, args: Sequence[Any]) -> None:
        """An op that writes: what it would write becomes the value of its targets."""
        values = [self.behind(each) for each in args]
        targets = [args[position] for position in op.writes]
        if not all(self.has(each) for each in targets):
            op(*values)
            return
        if op.name == "copy_":
            targets[0].write(stored(*values))
        elif op.name == "fill_":
            targets[0].write(copy._fill_number(*values))
        else:
            made = functional_form(op)(*values)
            for target, value in zip(targets, made if isinstance(made, tuple) else (made,), strict=True):
                target.write(value)


def stored(target: Tensor, source: Tensor) -> Tensor:
    """What `target` becomes where `source` is copied into it: `source` itself, if it is laid out alike."""
    if source._kind is target._kind and source.shape == target.shape and source.stride() == target.stride():
        return source
    return copy._copy(target, source)


# ----- elements by position: the ops take arrays, which is for the public functions to see to -------------------------


def _index(tensor: Tensor, advanced: Sequence[Any], _: Any) -> Tensor:
    return tensor[_positions(advanced)]


def _index_put(tensor: Tensor, advanced: Sequence[Any], _: Any, values: Tensor, accumulate: bool) -> Tensor:
    places = [None if each is None else _tensor(each) for each in advanced]
    return index_put_operator(tensor, places, values, accumulate)


def _index_backward(grad: Tensor, sizes: Sequence[int], advanced: Sequence[Any], _: Any) -> Tensor:
    return _index_put(grad.new_zeros(sizes), advanced, None, grad, True)


def _positions(advanced: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([slice(None) if each is None else _tensor(each) for each in advanced])


def _tensor(positions: Any) -> Tensor:
    return positions if isinstance(positions, Tensor) else constant(positions, kind_of_array(positions.dtype, CPU))


_BY_POSITION: dict[str, Callable[..., Tensor]] = {
    "index": _index,
    "index_put": _index_put,
    "index_backward": _index_backward,
}
