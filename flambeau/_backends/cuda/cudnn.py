"""cuDNN's graphs by its front end: plans for tensors of given shapes and strides, kept by those who make them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from ..._core.process.gpu_choices import CHOICES
from .driver import driver
from .scratch import scratch
from .waits import HERE

TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}
"""What the front end calls the types of elements."""
_MOST_WORKSPACE = 1 << 30
_TRIALS, _REPETITIONS = 10, 3
"""How many ways are tried where the quickest is wanted, and how often each of them is timed."""


class Refused(Exception):
    """cuDNN does not do it."""


@cache
def library() -> Any:
    """The front end with a library behind it; None: one of them is not there."""
    try:
        found = importlib.import_module("cudnn")
        found.backend_version()
    except Exception:  # whatever is missing: the front end finds out in its own ways
        return None
    return found


_handles: dict[int, Any] = {}


def _handle(stream: int) -> Any:
    """A handle for each queue: to tell a handle about another queue costs more than a launch."""
    found = _handles.get(stream)
    if found is None:
        api = library()
        found = api.create_handle()
        api.set_stream(found, stream)
        _handles[stream] = found
    return found


class Plan:
    """A graph that is ready to run."""

    __slots__ = ("_graph", "_workspace")

    def __init__(self, dtype: str, shortened: bool, describe: Callable[[Any], None]) -> None:
        """`describe` adds tensors, with numbers of their own, and operations to a graph."""
        api = library()
        kinds = api.data_type
        kind, wide = getattr(kinds, TYPES[dtype]), kinds.DOUBLE if dtype == "float64" else kinds.FLOAT
        graph = api.pygraph(
            io_data_type=kind,
            intermediate_data_type=wide,
            compute_data_type=wide,
            handle=_handle(driver().stream()),
        )
        try:
            describe(graph)
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([api.heur_mode.A, api.heur_mode.FALLBACK])
            notes = api.numerical_note
            if dtype == "float32" and not shortened:
                graph.deselect_numeric_notes([notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS])
            if CHOICES.deterministic:
                graph.deselect_numeric_notes([notes.NONDETERMINISTIC])
            graph.deselect_workspace_greater_than(_MOST_WORKSPACE)
            graph.check_support()
            self._build(graph)
        except (RuntimeError, ValueError, api.cudnnGraphNotSupportedError) as error:
            raise Refused(str(error)) from error
        self._graph = graph
        self._workspace: int = graph.get_workspace_size()

    def _build(self, graph: Any) -> None:
        graph.build_plans()

    def __call__(self, pointers: dict[int, int]) -> None:
        """Compute: for the number of each tensor its address."""
        stream = driver().stream()
        place, _ = scratch(self._workspace, stream) if self._workspace else (0, None)
        self._graph.execute(pointers, place, _handles.get(stream) or _handle(stream))


class MeasuredPlan(Plan):
    """A graph whose ways to be computed are tried when it first runs; the quickest is kept."""

    __slots__ = ("_chosen",)
    _chosen: int | None

    def _build(self, graph: Any) -> None:
        graph.build_plans(library().build_plan_policy.ALL)
        self._chosen = None

    def __call__(self, pointers: dict[int, int]) -> None:
        if self._chosen is None:
            if HERE.recording is not None:  # nothing can be timed now
                super().__call__(pointers)
                return
            self._chosen = self._quickest(pointers)
        self._run(self._chosen, pointers)

    def _run(self, number: int, pointers: dict[int, int]) -> None:
        stream, size = driver().stream(), self._graph.get_workspace_size_plan_at_index(number)
        place, _ = scratch(size, stream) if size else (0, None)
        self._graph.execute_plan_at_index(pointers, place, number, _handles.get(stream) or _handle(stream))

    def _quickest(self, pointers: dict[int, int]) -> int:
        events = driver().library
        times: dict[int, float] = {}
        for number in range(min(self._graph.get_execution_plan_count(), _TRIALS)):
            begin, end = events.Event(), events.Event()
            try:
                self._run(number, pointers)
                begin.record()
                for _ in range(_REPETITIONS):
                    self._run(number, pointers)
                end.record()
            except (RuntimeError, library().cudnnGraphNotSupportedError):
                continue
            end.synchronize()
            times[number] = events.get_elapsed_time(begin, end)
        return min(times, key=lambda number: times[number]) if times else 0
