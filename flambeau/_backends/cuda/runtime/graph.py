"""Graphs: work of the device that is recorded once, and then started again and again by one call."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from .devices import on_device
from .driver import driver
from .recording import Recording
from .synchronization import HERE


class Graph:
    """One recorded piece of work. Its memory stays where it is until `reset`, or until nothing refers to the graph."""

    def __init__(self, keeps_definition: bool = False) -> None:
        self.keeps_definition = keeps_definition
        self._ordinal = HERE.ordinal
        self._recording: Recording | None = None
        self._context: contextlib.ExitStack | None = None
        self._bodies: list[Any] = []
        """What is being recorded of work that is done in some cases only, the innermost last."""
        self.definition: Any = None
        self.executable: Any = None

    @property
    def pool(self) -> int | None:
        """The number of the pool that its memory comes from."""
        return None if self._recording is None else self._recording.pool

    def begin(self, pool: int | None = None) -> None:
        """Record from now on, instead of working, what this thread gives to the queue in use."""
        own = driver()
        self._ordinal = own.ordinal
        if HERE.recording is not None:
            raise RuntimeError("CUDA error: a graph is being captured in this thread already; graphs do not nest")
        if self._recording is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph: call reset() to capture again")
        stream = own.stream()
        if not stream:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.) torch.cuda.graph(...) chooses one."
            )
        pool = own.pool.new_pool() if pool is None else pool
        self._recording = Recording(stream, pool)
        self._context = contextlib.ExitStack()
        own.pool.hold(pool)
        own.begin_recording(stream)
        self._context.enter_context(own.pool.taking_from(pool, recording=True))
        HERE.recording = self._recording

    def end(self) -> None:
        """Record no more, and make what was recorded ready to be started."""
        own = driver()
        recording = self._recording
        if recording is None or self._context is None:
            raise RuntimeError("capture_end() without capture_begin()")
        if self._bodies:
            raise RuntimeError("capture_end() before end_capture_to_conditional_node()")
        if own.stream() != recording.stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        HERE.recording = None
        context, self._context = self._context, None
        try:
            self.definition = own.end_recording(recording.stream)
        except BaseException:
            context.close()
            self.reset()
            raise
        context.close()
        if not self.keeps_definition:
            self.instantiate()

    def begin_body(self, flag: Any) -> None:
        """Record from now on what is done only where `flag`, one byte, is not 0 when the work comes there."""
        if self._recording is None or HERE.recording is not self._recording:
            raise RuntimeError("begin_capture_to_if_node() outside of this graph's capture")
        self._recording.kept.append(flag)
        self._bodies.append(driver().begin_body(flag.pointer))

    def end_body(self) -> None:
        """Record what comes next for every case again."""
        if not self._bodies:
            raise RuntimeError("end_capture_to_conditional_node() without begin_capture_to_if_node()")
        driver().end_body(self._bodies.pop())

    def abandon(self) -> None:
        """End a recording that went wrong: there is no graph."""
        own = driver()
        recording, context = self._recording, self._context
        if recording is None or context is None:
            return
        while self._bodies:
            with contextlib.suppress(Exception):
                own.end_body(self._bodies.pop())
        HERE.recording = None
        self._context = None
        with contextlib.suppress(Exception), context:  # the library may have noticed the fault before us
            self.definition = own.end_recording(recording.stream)
        self.reset()

    def instantiate(self) -> None:
        """Make what was recorded ready to be started."""
        own = driver()
        if self.definition is None:
            raise RuntimeError("this CUDAGraph holds no captured graph to instantiate")
        if self.executable is not None:
            own.forget_executable(self.executable)
        self.executable = own.instantiate(self.definition)
        if not self.keeps_definition:
            own.forget_graph(self.definition)
            self.definition = None

    def replay(self) -> None:
        """Start everything that was recorded, in the queue in use."""
        if self.executable is None:
            if self.definition is None or self._recording is None:
                raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
            self.instantiate()
        assert self._recording is not None
        if self._ordinal != HERE.ordinal:
            with on_device(self._ordinal):
                self.replay()
            return
        self._recording.before_replay()
        driver().start_graph(self.executable)

    def reset(self) -> None:
        """Forget the work, and let its memory go."""
        if self._ordinal != HERE.ordinal:
            with on_device(self._ordinal):
                self.reset()
            return
        own = driver()
        if self.executable is not None:
            own.forget_executable(self.executable)
        if self.definition is not None:
            own.forget_graph(self.definition)
        self.definition = self.executable = None
        recording, self._recording = self._recording, None
        if recording is not None:
            own.pool.let_go(recording.pool)

    def __del__(self, _at_the_end: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _at_the_end():  # else modules may be gone, and the process gives all back
            with contextlib.suppress(Exception):
                self.reset()
