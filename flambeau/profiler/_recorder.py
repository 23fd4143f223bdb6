"""The interpreter behind profiles: it takes the time of every op, and of marked ranges, at as little cost as it can."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from .._core.process.caller import GENERATED, PACKAGE
from .._core.tensor import Tensor
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op
from .._dispatch.overloads import profiled_name
from ..autograd.profiler_util import EventList, FunctionEvent

_ACTIVE: list[Recorder] = []
"""The recorders that are running, the innermost last; each hears its own thread."""


class Recorder(Interpreter):
    """Runs ops as usual, and notes for each its start, its end, and what was asked for."""

    def __init__(
        self, *, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_flops: bool = False, with_modules: bool = False,
    ) -> None:  # fmt: skip
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self._is_detailed = record_shapes or profile_memory or with_stack or with_flops or with_modules
        self._notes: list[tuple[Op | str, int, int, dict[str, Any] | None]] = []
        self._modules: list[str] = []
        self._handles: list[Any] = []
        self._thread = threading.get_ident()
        self.started = 0
        self.is_entered = False

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        start = time.perf_counter_ns()
        result = op(*args)
        end = time.perf_counter_ns()
        self._notes.append((op, start, end, self._details(op, args, result) if self._is_detailed else None))
        return result

    def _details(self, op: Op, args: Sequence[Any], result: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.record_shapes:
            found["input_shapes"] = [_shapes(each) for each in args]
        if self.profile_memory and not op.makes_windows:
            found["memory"] = sum(each._array.nbytes for each in _tensors(result))
        if self.with_flops:
            from ..utils.flop_counter import flops_of

            found["flops"] = flops_of(op, args, result) or 0
        if self.with_stack:
            found["stack"] = _stack()
        if self._modules:
            found["module"] = self._modules[-1]
        return found

    def mark(self, name: str, start: int, end: int) -> None:
        """Note a range that has a name of its own."""
        self._notes.append((name, start, end, None))

    def __enter__(self) -> Recorder:
        from ..optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        starts: list[int] = []

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            starts.append(time.perf_counter_ns())

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            name = type(optimizer).__name__
            self.mark(f"Optimizer.step#{name}.step", starts.pop(), time.perf_counter_ns())

        self._handles = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]
        if self.with_modules:
            self._follow_modules()
        _ACTIVE.append(self)
        super().__enter__()
        self.started = time.perf_counter_ns()
        self.is_entered = True
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.is_entered = False
        _ACTIVE.remove(self)
        for handle in self._handles:
            handle.remove()

    def _follow_modules(self) -> None:
        from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
        from ..utils.module_tracker import ModuleTracker

        names = ModuleTracker()
        starts: list[int] = []

        def before(module: Any, inputs: Any) -> None:
            self._modules.append(names._name_of(module))
            starts.append(time.perf_counter_ns())

        def after(module: Any, inputs: Any, output: Any) -> None:
            self.mark(f"nn.Module: {self._modules.pop()}", starts.pop(), time.perf_counter_ns())

        self._handles.append(register_module_forward_pre_hook(before))
        self._handles.append(register_module_forward_hook(after, always_call=True))

    def events(self) -> EventList:
        """What was noted, as events, each with what ran inside of it."""
        notes = sorted(self._notes, key=lambda note: (note[1], -note[2]))
        events = EventList(profile_memory=self.profile_memory, with_flops=self.with_flops)
        running: list[FunctionEvent] = []
        for number, (what, start, end, details) in enumerate(notes):
            is_range = isinstance(what, str)
            name = what if isinstance(what, str) else profiled_name(what)
            event = FunctionEvent(
                number, name, self._thread, start / 1e3, end / 1e3, is_user_annotation=is_range, **(details or {})
            )
            while running and running[-1].time_range.end < event.time_range.end:
                running.pop()
            if running:
                running[-1].append_cpu_child(event)
            running.append(event)
            events.append(event)
        return events


def current_recorder() -> Recorder | None:
    """The innermost recorder of this thread."""
    if not _ACTIVE:
        return None
    thread = threading.get_ident()
    return next((each for each in reversed(_ACTIVE) if each._thread == thread), None)


def _shapes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return list(value._array.shape)
    if type(value) in (list, tuple) and any(isinstance(each, Tensor) for each in value):
        return [_shapes(each) for each in value]
    return []


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for each in value if isinstance(each, Tensor)] if type(value) in (list, tuple) else []


def _stack() -> list[str]:
    """The frames of the user's program, the innermost first."""
    import sys

    frames: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((PACKAGE, GENERATED)):
            frames.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return frames
