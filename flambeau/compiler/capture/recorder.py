"""Recording a call: it runs as usual, and its ops are written down as a `Program`."""

from __future__ import annotations

import dis
import inspect
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from ..._core.backend import is_array
from ..._core.modes import THREAD
from ..._core.storage import owner_of
from ..._core.tensor import Tensor
from ..._dispatch.composite import Composite
from ..._dispatch.factory import constant
from ..._dispatch.host_read import sizes
from ..._dispatch.interpreter import Interpreter
from ..._dispatch.op import Op
from .._marks import BREAKS
from ..program.items import Call, Outside, Read, SetGrad, Value, is_usable
from ..program.pure import is_pure
from ..program.reads import Written, differs, needed
from .abstract_arrays import AbstractArrays
from .careful import Careful
from .guards import State
from .new_objects import Made
from .ops import Capture
from .watch import Breaks, Watch, lines_in, users_frame

_LET_GO = object()
"""Stands for a gradient that is not there any more: whatever a tensor has now is another one."""


class Recorder(Careful, Capture):
    """A capture of one call, of which it is known what it may depend on; `reason`: why it cannot be run again."""

    def __init__(self, state: State, watch: Watch, function: Any, made: Made) -> None:
        super().__init__()
        self.read: Call | None = None
        """The last op, if the function returns what that reads."""
        self._demoted: Read | str = ""
        """What that read is if it turns out not to be the last: a check, or why it cannot be one."""
        self._root = getattr(function, "__code__", None)
        self.reason: str | None = None
        self.breaks: Breaks = {}
        """At which lines of which functions that is."""
        self.is_error = False
        """Whether the user wants to be told of a graph break there."""
        self._state = state
        self._watch = watch
        self._grads: dict[int, Any] = {id(tensor): tensor._grad for tensor, _ in state.tensors.values()}
        self._beyond = [(each, _gradient_of(each)) for each in self._leaves_beyond()]
        """The leaves behind tensors with a history, which the call does not hold, and their gradients."""
        self._at_first = self._versions()
        self._counted_outside = dict.fromkeys(self._at_first, 0)
        self._written = Written()
        self._abstract = AbstractArrays([tensor._array for tensor, _ in state.tensors.values()])
        self._alive: dict[int, Any] = {}
        """What tells, for the arrays that are known by their identity, when they are gone."""
        self.made = made
        self.looks: Any = None
        """Who ends the call where a graph break is; None: nobody."""
        self._changed_outside = False
        """Whether Python that runs outside has changed tensors that were there before."""

    def __enter__(self) -> Any:
        return Interpreter.__enter__(self)  # what was there before is known from the walk over Python state

    @property
    def is_refused(self) -> bool:
        """Whether the call cannot be compiled."""
        return self.reason is not None or self._watch.reason is not None or self._watch.is_surprised

    def _run(self, op: Op, args: Sequence[Any]) -> Any:
        self._forget_gradients()
        if self.read is not None:
            self._goes_on()
        if self.looks is not None:
            given = self.looks.begins(op, args)
            results = self._written_down(op, args)
            self.looks.ends(results, given)
            return results
        return self._written_down(op, args)

    def _written_down(self, op: Op, args: Sequence[Any]) -> Any:
        if op.reads:
            return self._reads(op, args)
        if isinstance(op, Composite):
            results = self._apply(op.as_one, (args,), declines=True)
            if results is None:
                with self:
                    return self._apply(op.decomposition, args)
            noted = self._noted(op, tuple(args))
        else:
            noted = self._noted(op, tuple(args))
            results = self._apply(op, args)
        self._write(op, args, noted, results)
        if op.writes:
            self._written.note(op, self._example(args))
        if getattr(op.shape, "refuses", False):  # what follows may depend on the shape, which depends on elements
            for each in tensors_in(results):
                shape = Call(sizes, (self._values[id(each._array)],), None, self._example((each,)), each._array.shape)
                self._note_read(shape, self._watched_frame())
                self._goes_on()
        return results

    def _reads(self, op: Op, args: Sequence[Any]) -> Any:
        """Python looks: what it returns at once is part of the result, anything else may decide what it does next."""
        frame = self._watched_frame()
        found = self._apply(op, args)
        noted = self._noted(op, tuple(args))
        read = Call(op, noted, None, self._example(tuple(args)), _kept(found))
        self._note_read(read, frame)
        if frame.f_code is not self._root or self._watch.calls_out_of(frame) or not returns_next(frame):
            self._goes_on()
        return found

    def _note_read(self, read: Call, frame: FrameType) -> None:
        self.read = read
        place = _place(frame)
        moves = self._holds_before_all_else(read)
        if self._has_no_effect_yet() and (moves or self._can_be_begun_anew()):
            self._demoted = Read(read, place, lines_in(frame), behind_all=not moves)
        else:
            self._demoted = f"Python looks at the elements of a tensor, by {read.op.name} ({place})"

    def _goes_on(self) -> None:
        """Take it that Python does something with what it has read."""
        if isinstance(self._demoted, str):
            self.refuse(self._demoted)
        else:
            self.program.items.append(self._demoted)
        self.read = None

    def returns(self, result: Any, left: Sequence[Any]) -> None:
        """Take note of what the function returns, what it has read last or something else; `left`: with all that it
        leaves in what was there before.
        """
        self.made.end(left)
        if self.read is not None:
            kind = type(result)
            is_read = kind in (bool, int, float, complex) and not differs(kind(self.read.made), result)
            if not is_read or any(each._grad_fn is not None for each in self.made.tensors(left)):
                self._goes_on()  # to the backward pass of what it leaves, in the second case

    def _watched_frame(self) -> FrameType:
        """Whose code runs."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code not in self._watch.codes:
            frame = frame.f_back
        return frame

    def _has_no_effect_yet(self) -> bool:
        """Whether nothing that was there before has been changed."""
        tensors = self._state.tensors.values()
        return not self._changed_outside and not any(self._written.has(each._array) for each, _ in tensors)

    def _can_be_begun_anew(self) -> bool:
        """Whether the random numbers that were drawn can be drawn again."""
        made = [each for call in self.calls if call.op.draws for each in tensors_in([call.examples, call.made])]
        return all(each._kind.is_cpu for each in made)

    def _holds_before_all_else(self, read: Call) -> bool:
        """Whether a read finds the same if it is moved to the front, with no more than what it needs."""
        calls = needed(self.program.items, read)
        examples = [each for call in (*calls, read) for each in tensors_in(call.examples)]
        return all(map(is_pure, calls)) and not any(self._written.has(each._array) for each in examples)

    def run_outside(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run Python that is to run as it stands every time: neither watched nor recorded."""
        before: dict[int, int] = {}
        with self._guarded():
            before = self._before_outside(function, args, kwargs)
        modes = THREAD.modes
        stack, watching = modes.interpreters, sys.getprofile()
        try:
            modes.interpreters = ()
            modes.refresh()
            sys.setprofile(None)
            result = function(*args, **kwargs)
        finally:
            sys.setprofile(watching)
            modes.interpreters = stack
            modes.refresh()
        with self._guarded():
            self._after_outside(result, before)
        return result

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let no error of the recorder's reach the user's code."""
        try:
            yield
        except Exception as error:
            self.failed(error)

    def _before_outside(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, int]:
        """Write the call of Python outside down; the versions of the tensors before it."""
        given = [*(args if inspect.ismethod(function) else args[1:]), *kwargs.values()]
        if any(each is not None and type(each) is not bool for each in given):
            self.refuse(
                f"{getattr(function, '__qualname__', function)} is given something that may be another the next time"
            )
        self.set_gradients()
        self.program.items.append(Outside(function, args, kwargs))
        return self._versions()

    def _after_outside(self, result: Any, before: dict[int, int]) -> None:
        if self.fault is not None:
            return
        if result is not None:
            self.refuse("a step of an optimizer returns something")
        self._state.gradients.let_go(self._state.tensors, self._values, all_of_them=True)
        self._grads = {id(tensor): tensor._grad for tensor, _ in self._state.tensors.values()}
        for key, version in self._versions().items():
            self._counted_outside[key] += version - before[key]
            self._changed_outside |= version != before[key]

    def changes(self) -> dict[int, int]:
        """How often the ops that are written down have changed the tensors that were there before, by their arrays."""
        now = self._versions()
        return {key: now[key] - self._at_first[key] - self._counted_outside[key] for key in now}

    def _versions(self) -> dict[int, int]:
        return {
            key: 0 if tensor._counter is None else tensor._counter[0]
            for key, (tensor, _) in self._state.tensors.items()
        }

    def set_gradients(self) -> None:
        """Write down which gradients have been set since they were last looked at."""
        for tensor, _ in self._state.tensors.values():
            self._set_gradient(tensor)
        if any(_gradient_of(leaf) != before for leaf, before in self._beyond):
            self.refuse("it runs a backward pass beyond its arguments")

    def _leaves_beyond(self) -> list[Tensor]:
        held = {id(tensor) for tensor, _ in self._state.tensors.values()}
        nodes = [tensor.grad_fn for tensor, _ in self._state.tensors.values() if tensor.grad_fn is not None]
        found: dict[Any, None] = dict.fromkeys(nodes)
        for node in nodes:  # it grows meanwhile
            for target in [edge[0] for edge in node.edges if edge is not None and edge[0] not in found]:
                found[target] = None
                if not isinstance(target, Tensor):
                    nodes.append(target)
        return [each for each in found if isinstance(each, Tensor) and id(each) not in held]

    def _set_gradient(self, tensor: Tensor) -> None:
        grad = tensor._grad
        if grad is not self._grads[id(tensor)]:
            if grad is not None and grad.requires_grad:
                self.refuse("it leaves a gradient that can be differentiated again")
            value = None if grad is None else self.known(grad)
            self.program.items.append(SetGrad(tensor, value, None if grad is None else grad._kind))
            self._grads[id(tensor)] = grad

    def _forget_gradients(self) -> None:
        """Hold gradients no longer that somebody has forgotten: what is made next may need their memory."""
        for owner in self._state.gradients.let_go(self._state.tensors, self._values):
            if owner._grad is None:
                self._set_gradient(owner)  # here the program forgets it, too
            else:
                self._grads[id(owner)] = _LET_GO

    def known(self, tensor: Tensor) -> Value | None:
        """The value of a gradient."""
        found = self.value_of(tensor)
        if found is None:
            self.refuse("a gradient comes from nowhere")
        return found

    def refuse(self, reason: str) -> None:
        """Note why the call cannot be compiled; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self.breaks = lines_in(sys._getframe(1))
            self.is_error = BREAKS.are_errors

    def _noted(self, op: Op, value: Any) -> Any:
        if type(value) is Tensor or not is_array(value):
            return super()._noted(op, value)
        return self._values.get(id(value)) or self._of_array(op, value)

    def _given(self, op: Op, tensor: Tensor) -> Value:
        found = self._state.tensors.get(id(tensor._array))
        if found is None:
            self.refuse(f"{op.name} uses a tensor that the call does not hold")
        return self.new_input(tensor if found is None else found[0])  # checks know the one that the call holds

    def _of_array(self, op: Op, array: Any) -> Any:
        """The value of a bare array: that of a tensor, as positions are given; or data of Python's, which stays.

        The tensor that `constant` makes lies in the memory of its data, which this call may change in place later.
        """
        found = self._state.tensors.get(id(array))
        if found is not None:
            return self.new_input(found[0])
        return array.copy() if op is constant else array

    def misses(self, what: str) -> None:
        with self._guarded():
            self.refuse(f"{what} ({_place(users_frame(self._watched_frame()))})")

    def reads_offset(self, tensor: Tensor) -> None:
        owner = owner_of(tensor._array)
        with self._guarded():
            for known, held in self._state.tensors.values():
                if owner_of(known._array) is owner:
                    self._state.check_offset(known._array, held)

    def new_value(self, tensor: Tensor) -> Value:
        kind = tensor._kind
        if not is_usable(kind):
            self.refuse(f"it makes a tensor of {kind!r}")
        value = super().new_value(tensor)
        self._let_go(value, tensor._array)
        return value

    def _let_go(self, value: Value, array: Any) -> None:
        """Keep no more of an array than what it looks like: it is the call's own."""
        abstract = self._abstract.of(array)
        if abstract is array:
            return
        self.tensors[value.number] = Tensor._from_parts((abstract, self.tensors[value.number]._kind, [0, None]))
        key, values, alive = id(array), self._values, self._alive

        def forget(_: Any) -> None:
            del values[key], alive[key]

        alive[key] = weakref.ref(array, forget)

    def _example(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            known = self._values.get(id(value._array))
            return value if known is None else self.tensors[known.number]
        return type(value)([self._example(each) for each in value]) if type(value) in (list, tuple) else value


def tensors_in(tree: Any) -> list[Tensor]:
    """The tensors among arguments or results."""
    if isinstance(tree, Tensor):
        return [tree]
    return [found for each in tree for found in tensors_in(each)] if type(tree) in (list, tuple) else []


def _kept(found: Any) -> Any:
    """What was found, as it stays: an array may be a window on the tensor."""
    return found.copy() if isinstance(found, np.ndarray) else found


def returns_next(frame: FrameType) -> bool:
    """Whether the result of the call that a frame is in is what its function returns."""
    following = next((each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti), None)
    return following is not None and following.opname == "RETURN_VALUE"


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _gradient_of(leaf: Tensor) -> tuple[int, int | None]:
    """What tells whether somebody has added to a gradient."""
    grad = leaf._grad
    return id(grad), None if grad is None or grad._counter is None else grad._counter[0]
