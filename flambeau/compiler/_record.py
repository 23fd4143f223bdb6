"""Recording a call: it runs as usual, and its ops are written down as a `Program`."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from .._core.modes import THREAD
from .._core.tensor import Tensor
from .._dispatch.composite import Composite
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op
from ._program import Call, Outside, Program, SetGrad, Value
from ._state import State
from ._watch import Watch


class Recorder(Interpreter):
    """Runs ops as usual and writes them down; `reason` says why what it wrote cannot be run again."""

    def __init__(self, state: State, watch: Watch, function: Any) -> None:
        self.program = Program()
        self.read: Call | None = None
        """The last op, if the function returns what that reads."""
        self._root = getattr(function, "__code__", None)
        self.reason: str | None = None
        self._state = state
        self._watch = watch
        self._values: dict[int, Value] = {}
        self._kept: list[Tensor] = []
        self._grads = {id(tensor): tensor._grad for tensor, _ in state.tensors.values()}
        self._at_first = self._versions()
        self._counted_outside = dict.fromkeys(self._at_first, 0)

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        if self.read is not None:
            self.refuse(f"it goes on, by {op.name}, after what it returns has been read")
        if op.reads:
            return self._reads(op, args)
        if isinstance(op, Composite) and _is_taken_apart(op, args):
            with self:
                return op.decomposition(*args)
        noted = tuple([self._noted(op, each) for each in args])
        results = op(*args)
        self.program.items.append(Call(op, noted, self._made(results), tuple(args), results))
        return results

    def _reads(self, op: Op, args: Sequence[Any]) -> Any:
        """What Python does next may depend on what it reads; unless it returns that at once."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code not in self._watch.codes:
            frame = frame.f_back
        found = op(*args)
        if frame.f_code is not self._root or not _returns_next(frame):
            self.refuse(f"Python looks at the elements of a tensor, by {op.name} ({_place(frame)})")
        else:
            noted = tuple([self._noted(op, each) for each in args])
            self.read = Call(op, noted, None, tuple(args), found)
        return found

    def run_outside(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run Python that is to run as it stands every time: neither watched nor recorded."""
        given = [*(args if inspect.ismethod(function) else args[1:]), *kwargs.values()]
        if any(each is not None and type(each) is not bool for each in given):
            self.refuse(
                f"{getattr(function, '__qualname__', function)} is given something that may be another the next time"
            )
        self.set_gradients()
        self.program.items.append(Outside(function, args, kwargs))
        before = self._versions()
        modes = THREAD.modes
        stack, modes.interpreters = modes.interpreters, ()
        modes.refresh()
        watching = sys.getprofile()
        sys.setprofile(None)
        try:
            result = function(*args, **kwargs)
        finally:
            sys.setprofile(watching)
            modes.interpreters = stack
            modes.refresh()
        if result is not None:
            self.refuse("a step of an optimizer returns something")
        self._grads = {id(tensor): tensor._grad for tensor, _ in self._state.tensors.values()}
        for key, version in self._versions().items():
            self._counted_outside[key] += version - before[key]
        return result

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
            grad = tensor._grad
            if grad is not self._grads[id(tensor)]:
                value = None if grad is None else self.known(grad)
                self.program.items.append(SetGrad(tensor, value, None if grad is None else grad._kind))
                self._grads[id(tensor)] = grad

    def value_of(self, tensor: Tensor) -> Value | None:
        """The value of a tensor, if it has one."""
        return self._values.get(id(tensor._array))

    def new_input(self, tensor: Tensor) -> Value:
        """Let a tensor that is given to the program later be one of its inputs."""
        value = self._new(tensor)
        self.program.inputs[value.number] = tensor
        return value

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

    def _noted(self, op: Op, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._value(op, value)
        if type(value) in (list, tuple):
            return type(value)([self._noted(op, each) for each in value])
        return value

    def _value(self, op: Op, tensor: Tensor) -> Value:
        found = self._values.get(id(tensor._array))
        if found is None:
            found = self.new_input(tensor)
            if id(tensor._array) not in self._state.tensors:
                self.refuse(f"{op.name} uses a tensor that the call does not hold")
        return found

    def _made(self, results: Any) -> Any:
        if isinstance(results, Tensor):
            return self._values.get(id(results._array)) or self._new(results)
        if type(results) in (list, tuple):
            return [self._made(each) for each in results]
        return results

    def _new(self, tensor: Tensor) -> Value:
        kind = tensor._kind
        if not kind.is_cpu or kind.indirect or kind.plain is not kind:
            self.refuse(f"it makes a tensor of {kind!r}")
        value = self._values[id(tensor._array)] = Value(len(self._values))
        self._kept.append(Tensor._from_parts(tensor._parts()))  # no other array gets its address
        return value


def _returns_next(frame: FrameType) -> bool:
    """Whether the result of the call that a frame is in is what its function returns."""
    following = next((each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti), None)
    return following is not None and following.opname == "RETURN_VALUE"


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_taken_apart(op: Composite[Any], args: Sequence[Any]) -> bool:
    """Whether no backend runs a composite op as one on these arguments."""
    arrays = [_arrays(each) for each in args]
    first = next((each for each in op.tensors_of(args)), None)
    if first is None:
        return True
    kind = first._kind
    return (kind.runs.get(op) or kind.backend.prepare(op))(*arrays) is None


def _arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array
    return [_arrays(each) for each in value] if type(value) is list else value
