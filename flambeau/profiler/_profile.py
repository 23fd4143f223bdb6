"""One profile of what a block of the program runs: `torch.autograd.profiler.profile`."""

from __future__ import annotations

import os
from typing import Any

from ..autograd.profiler_util import EventList, FunctionEventAvg
from ._events import events_of
from ._memory_timeline import MemoryTimeline
from ._recorder import DetailedRecorder, Recorder


class profile:
    """A context that takes the time of every op of its thread, those of backward passes included.

    `record_shapes`: note the shapes of arguments. `profile_memory`: the bytes of results. `with_stack`: the lines of
    the program. `with_flops`: multiplications and additions, as `torch.utils.flop_counter` counts them.
    `with_modules`: the path of the module that runs, and a range for its forward pass.

    >>> with flambeau.autograd.profiler.profile() as prof:
    ...     _ = flambeau.ones(2, 3) @ flambeau.ones(3, 2)
    >>> [event.name for event in prof.function_events]
    ['aten::full', 'aten::full', 'aten::mm']
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, experimental_config: Any = None,
        acc_events: bool = False, custom_trace_id_callback: Any = None, post_processing_timeout_s: float | None = None,
        activity_filters: dict[Any, set[str]] | None = None,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self._options = {
            "record_shapes": self.record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
            "with_flops": with_flops, "with_modules": with_modules,
        }  # fmt: skip
        self._recorder: Recorder | None = None
        self._events: EventList | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recorder = DetailedRecorder(**self._options) if any(self._options.values()) else Recorder()
        self._recorder.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled and self._recorder is not None:
            self._recorder.__exit__(*exception)

    @property
    def function_events(self) -> EventList | None:
        """What ran, in the order of the start."""
        if self._events is None and self._recorder is not None:
            self._events = events_of(self._recorder)
            self._events._profile_memory = self._options["profile_memory"]
            self._events._with_flops = self._options["with_flops"]
        return self._events

    def go_on(self) -> None:
        """Record again, behind what was recorded."""
        assert self._recorder is not None
        self._events = None
        self._recorder.__enter__()

    def memory_timeline(self) -> MemoryTimeline:
        """Memory over the time of the profile."""
        if self._recorder is None:
            raise RuntimeError("Profiler didn't finish running")
        return MemoryTimeline(self._recorder)

    def _finished(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One average for each name of an op."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, *args: Any, **options: Any) -> str:
        """What ran, as text."""
        return self._finished().table(*args, **options)

    def total_average(self) -> FunctionEventAvg:
        """Everything that ran as one."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of everything that ran, in microseconds."""
        return self._finished().self_cpu_time_total

    def export_chrome_trace(
        self, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None, use_python_export: bool = False
    ) -> None:
        """Write a file for chrome://tracing and Perfetto, which is written in Python anyway."""
        events = self._finished()
        events.metadata |= metadata or {}
        if self._options["profile_memory"]:
            events.memory = self.memory_timeline().series()
        events.export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the stacks with their times, for flame graphs."""
        if not self._options["with_stack"]:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._finished().export_stacks(path, metric)

    def __repr__(self) -> str:
        return repr(self.function_events) if self._recorder is not None else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self._recorder is not None else "<unfinished torch.autograd.profile>"
