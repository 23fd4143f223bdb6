"""The watcher behind profiles: it takes the time of every op, and of marked ranges, at as little cost as it can.

What it notes is raw: op records, clock readings, shapes, code objects with offsets. `_events.py` makes of that what
users see, when they ask.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from .._core.modes import THREAD
from .._core.process.caller import IS_INTERNAL
from .._core.tensor import Tensor
from .._dispatch.interpreter import Watcher
from .._dispatch.op import Op
from .._ops.linalg.matmul import _mm
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._memory import MemoryLog

FORWARD, BACKWARD, STEP = range(3)
"""In which part of a training step an op ran."""


class Details(NamedTuple):
    """What is noted of a call if it is asked for."""

    shapes: tuple[Any, ...] = ()
    flops: int = 0
    frames: tuple[CodeType | int, ...] = ()
    """The user's frames, the innermost first: code objects, each followed by the offset of its instruction."""
    module: str = ""
    nbytes: int = 0
    phase: int = FORWARD


class Spanning(Protocol):
    """Something that goes on beside the ops."""

    def span(self) -> tuple[int, int] | None:
        """When it began and when it ended, as `perf_counter_ns` says; None: that is not known."""


Note = tuple[Any, ...]
"""An op or the name of a range, start, end; then, if they were asked for, the fields of `Details`."""

_ACTIVE: list[Recorder] = []
"""The recorders that are running, the innermost last; each hears its own thread."""


class Recorder(Watcher):
    """Notes for each op its start and its end."""

    def __init__(self, *, with_modules: bool = False) -> None:
        self.notes: list[Note] = []
        self.with_modules = with_modules
        self.memory: MemoryLog | None = None
        self.under_way: list[tuple[str, Spanning]] = []
        """What was started and goes on beside the ops."""
        self.thread = threading.get_ident()
        self.started = 0
        self.is_entered = False
        self._note = self.notes.append
        self._modules: list[str] = []
        self._steps: list[int] = []
        self._handles: list[Any] = []

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        self._note((op, start, end))

    def mark(self, name: str, start: int, end: int) -> None:
        """Note a range that has a name of its own."""
        self._note((name, start, end))

    def __enter__(self) -> Recorder:
        from ..optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._steps.append(perf_counter_ns())

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            name = type(optimizer).__name__
            self.mark(f"Optimizer.step#{name}.step", self._steps.pop(), perf_counter_ns())

        self._handles = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]
        if self.with_modules:
            self._follow_modules()
        _ACTIVE.append(self)
        super().__enter__()
        self.started = self.started or perf_counter_ns()
        self.is_entered = True
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.is_entered = False
        _ACTIVE.remove(self)
        for handle in self._handles:
            handle.remove()
        if self.memory is not None:
            self.memory.close()

    def _follow_modules(self) -> None:
        from ..utils.module_tracker import ModuleTracker

        names = ModuleTracker()
        known: dict[int, tuple[str, Any]] = {}  # with the modules, so that no other one gets the same id
        starts: list[int] = []

        def before(module: Any, inputs: Any) -> None:
            found = known.get(id(module))
            if found is None:
                found = known[id(module)] = names._name_of(module), module
            self._modules.append(found[0])
            starts.append(perf_counter_ns())

        def after(module: Any, inputs: Any, output: Any) -> None:
            self.mark(f"nn.Module: {self._modules.pop()}", starts.pop(), perf_counter_ns())

        self._handles.append(register_module_forward_pre_hook(before))
        self._handles.append(register_module_forward_hook(after, always_call=True))


class DetailedRecorder(Recorder):
    """Notes more of each call."""

    def __init__(
        self, *, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_flops: bool = False, with_modules: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(with_modules=with_modules)
        self._record_shapes, self._with_stack, self._with_flops = record_shapes, with_stack, with_flops
        self.memory = MemoryLog() if profile_memory else None
        self._known_flops: dict[Any, int] = {}
        self._has_flops: dict[Op, bool] = {}
        if with_flops:
            from ..utils.flop_counter import flops_of, has_formula

            self._count, self._is_counted = flops_of, has_formula
            one = Tensor([[1.0]])
            flops_of(_mm, (one, one), one)  # the first count takes a while: have it before the clock runs

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        nbytes, phase = 0, FORWARD
        if self.memory is not None:
            nbytes = self.memory.seen(args, result, end, len(self.notes))
            phase = STEP if self._steps else FORWARD if THREAD.modes.backward_pass is None else BACKWARD
        shapes: tuple[Any, ...] = ()
        if self._record_shapes:
            shapes = tuple([each._array.shape if isinstance(each, Tensor) else _shapes(each) for each in args])
        flops = self._flops(op, args, shapes, result) if self._with_flops else 0
        frames = _frames() if self._with_stack else ()
        module = self._modules[-1] if self._modules else ""
        self._note((op, start, end, shapes, flops, frames, module, nbytes, phase))

    def _flops(self, op: Op, args: Sequence[Any], shapes: tuple[Any, ...], result: Any) -> int:
        """The operations of a call: they follow from the shapes, and from the arguments that are no tensors."""
        has_flops = self._has_flops.get(op)
        if has_flops is None:
            has_flops = self._has_flops[op] = self._is_counted(op)
        if not has_flops:
            return 0
        others = tuple([each for each in args if not isinstance(each, Tensor)])
        try:
            known = self._known_flops.get((op, shapes, others))
        except TypeError:  # lists among the arguments
            return self._count(op, args, result) or 0
        if known is None:
            known = self._known_flops[op, shapes, others] = self._count(op, args, result) or 0
        return known


def recorders() -> list[Recorder]:
    """The recorders of this thread, the innermost last."""
    if not _ACTIVE:
        return []
    thread = threading.get_ident()
    return [each for each in _ACTIVE if each.thread == thread]


def _shapes(value: Any) -> tuple[Any, ...]:
    """The shapes of the tensors in a list."""
    if type(value) is not list and type(value) is not tuple:
        return ()
    shapes = tuple([each._array.shape if isinstance(each, Tensor) else None for each in value])
    return () if shapes.count(None) == len(shapes) else tuple([() if each is None else each for each in shapes])


def _frames() -> tuple[CodeType | int, ...]:
    """Where the user's program stands."""
    found: list[CodeType | int] = []
    frame: FrameType | None = sys._getframe(3)  # beyond the recorder and who called it
    while frame is not None:
        code = frame.f_code
        if not IS_INTERNAL[code.co_filename]:
            found += code, frame.f_lasti
        frame = frame.f_back
    return tuple(found)
