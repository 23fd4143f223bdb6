"""cuDNN's graphs by its front end: plans for tensors of given shapes and strides, kept by those who make them.

Attention has them; convolutions, of which a step has more, go the shorter way of `cudnn_convolutions.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from ..._core.process.gpu_choices import CHOICES
from .driver import driver
from .scratch import scratch

TYPES = {"float32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}
"""What the front end calls the types of elements."""
_MOST_WORKSPACE = 1 << 30


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

    def __init__(self, dtype: str, describe: Callable[[Any], None]) -> None:
        """`describe` adds tensors, with numbers of their own, and operations to a graph."""
        api = library()
        kinds = api.data_type
        graph = api.pygraph(
            io_data_type=getattr(kinds, TYPES[dtype]),
            intermediate_data_type=kinds.FLOAT,
            compute_data_type=kinds.FLOAT,
            handle=_handle(driver().stream()),
        )
        try:
            describe(graph)
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([api.heur_mode.A, api.heur_mode.FALLBACK])
            if CHOICES.deterministic:
                graph.deselect_numeric_notes([api.numerical_note.NONDETERMINISTIC])
            graph.deselect_workspace_greater_than(_MOST_WORKSPACE)
            graph.check_support()
            graph.build_plans()
        except (RuntimeError, ValueError, api.cudnnGraphNotSupportedError) as error:
            raise Refused(str(error)) from error
        self._graph = graph
        self._workspace: int = graph.get_workspace_size()

    def __call__(self, pointers: dict[int, int]) -> None:
        """Compute: for the number of each tensor its address."""
        stream = driver().stream()
        place, _ = scratch(self._workspace, stream) if self._workspace else (0, None)
        self._graph.execute(pointers, place, _handles.get(stream) or _handle(stream))
