"""`torch.profiler.profile`: profiles of the steps of a program, and what to do with each."""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from .._core.names.absent import Table
from .._core.process.caller import warn_user_once
from ..autograd.profiler_util import EventList
from ._profile import profile as _OneProfile
from ._schedule import ProfilerAction, record_function, schedule, supported_activities

__all__ = ["ProfilerAction", "profile", "schedule", "supported_activities", "tensorboard_trace_handler"]

__getattr__, __dir__ = Table(__name__).elsewhere("ExecutionTraceObserver", "profiler._execution_trace").parts()

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """For `on_trace_ready`: write each profile to a file of its own in a folder, where TensorBoard finds it."""

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export)

    return handler


class profile:
    """A context that takes the time of every op, in all steps or in those that `schedule` picks.

    With a schedule the program calls `step()` after each of its steps. `on_trace_ready(profiler)` is called whenever a
    profile is complete. The other options are those of `torch.autograd.profiler.profile`.
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
        experimental_config: Any = None, execution_trace_observer: Any = None, acc_events: bool = False,
        use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        self.activities = supported_activities() if activities is None else set(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.acc_events = acc_events
        self._steps_are_marked = schedule is not None
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.execution_trace_observer = execution_trace_observer
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: _OneProfile | None = None
        self._is_recording = False
        self._step_mark: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        if self.current_action in _RECORDING:
            self._begin()
        self._mark_step()

    def stop(self) -> None:
        """End; what was recorded is complete."""
        self._end_step()
        if self._is_recording:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """Say that a step of the program is over."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.RECORD and self.current_action not in _RECORDING:
            self._end()
        if self.current_action in _RECORDING and not self._is_recording:
            self._begin()
        self._mark_step()

    def _begin(self) -> None:
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        if self.profiler is not None and self.acc_events:
            self.profiler.go_on()
            self._is_recording = True
            return
        if self.profiler is not None:
            warn_user_once(
                "Warning: Profiler clears events at the end of each cycle: those of the last one remain. "
                "on_trace_ready sees each of them in time, and acc_events=True keeps all."
            )
        self.profiler = _OneProfile(
            record_shapes=self.record_shapes, profile_memory=self.profile_memory, with_stack=self.with_stack,
            with_flops=self.with_flops, with_modules=self.with_modules,
        )  # fmt: skip
        self.profiler.__enter__()
        self._is_recording = True

    def _end(self) -> None:
        assert self.profiler is not None
        self.profiler.__exit__(None, None, None)
        self._is_recording = False
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()

    def _mark_step(self) -> None:
        if self._steps_are_marked:
            self._step_mark = record_function(f"ProfilerStep#{self.step_num}")
            self._step_mark.__enter__()

    def _end_step(self) -> None:
        if self._step_mark is not None:
            self._step_mark.__exit__(None, None, None)
            self._step_mark = None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Give traces names of one's own."""
        self._metadata["trace_id"] = callback()

    def get_trace_id(self) -> str | None:
        """The name of the trace, if it was given one."""
        return self._metadata.get("trace_id")

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the trace file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, given as JSON, into the trace file."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stop or continue to record ops."""
        if not self.profiler:
            return
        recorder = self.profiler._recorder
        assert recorder is not None
        if enable and not recorder.is_entered:
            recorder.__enter__()
        elif not enable and recorder.is_entered:
            recorder.__exit__()

    def _complete(self) -> _OneProfile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before its events are asked for")
        return self.profiler

    def events(self) -> EventList:
        """What ran, in the order of the start."""
        return self._complete()._finished()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One average for each name of an op, or for each name with each list of shapes or each stack."""
        return self._complete().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """Write a file for chrome://tracing and Perfetto; a name with `.gz` is compressed."""
        self._complete().export_chrome_trace(path, self._metadata)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write how much memory tensors of the CPU had over time, by what it was for.

        A name that ends in `.json` gives `[times, sizes]` as PyTorch writes them, one in `.raw.json.gz` every change,
        one in `.html` the page of `export_page`. It takes `profile_memory=True`.
        """
        if device not in (None, "cpu"):
            raise ValueError(f"export_memory_timeline(): profiles hold memory of the cpu, not of {device}")
        name = os.fspath(path)
        if name.endswith(".html"):
            self.export_page(path)
            return
        timeline = self._complete().memory_timeline()
        if name.endswith(".raw.json.gz"):
            with gzip.open(path, "wt", encoding="utf-8") as packed:
                json.dump(timeline.raw(), packed)
            return
        with gzip.open(path, "wt", encoding="utf-8") if name.endswith(".gz") else open(path, "w") as file:
            json.dump(timeline.series(), file)

    def export_page(self, path: str | os.PathLike[str], title: str = "Profile") -> None:
        """Write one HTML page that needs nothing else: the ops over time, by time, and the memory with its peak.

        What it shows depends on what was recorded: `profile_memory`, `with_stack`, `with_modules` and `record_shapes`
        each add to it.
        """
        from ._page import page

        text = page(self._complete(), title)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_html_(self) -> str | None:
        """What notebooks show: the page of `export_page`; None before the profile is complete."""
        if self.profiler is None:
            return None
        from .._core.text.html import framed
        from ._page import page

        return framed(page(self._complete(), "Profile"))

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the stacks with their times, for flame graphs."""
        self._complete().export_stacks(path, metric)
