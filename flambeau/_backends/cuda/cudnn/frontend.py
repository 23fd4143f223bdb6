"""cuDNN's graphs by its front end: plans for tensors of given shapes and strides, kept by those who make them.

Attention has them; convolutions, of which a step has more, go the shorter way of `convolutions.py`.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from ...._core.process.gpu_choices import CHOICES
from ..memory.workspace import scratch
from ..runtime.compile_queue import COMPILE_QUEUE
from ..runtime.devices import PlanOfDevice
from ..runtime.disk_cache import load, name_for, store
from ..runtime.driver import driver
from . import descriptors
from .descriptors import Refused, handle

TYPES = {"float32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}
"""What the front end calls the types of elements."""
_MOST_WORKSPACE = 1 << 30
_FRONT_END = "cudnn"
_COMPILED_PART = f"{_FRONT_END}._compiled_module"
_USED = ("pygraph", "data_type", "heur_mode", "cudnnGraphNotSupportedError")
"""What plans are made of. Versions from 1.23 on have other names for some of it."""


@cache
def library() -> Any:
    """The front end's compiled part, with a library behind it; None: one is not there, or not as this file knows it."""
    behind = descriptors.library()
    try:
        found = _compiled_part()
        found._set_dlhandle_cudnn(behind._handle)
        found.backend_version()
        for name in _USED:
            getattr(found, name)
    except Exception:  # whatever is missing: the front end finds out in its own ways
        return None
    return found


def _compiled_part() -> Any:
    """The module that the front end's others only dress.

    They import PyTorch wherever it is installed, which takes seconds and is of no use here. Whoever imports them later
    finds this module where they look for it.
    """
    if _COMPILED_PART in sys.modules:
        return sys.modules[_COMPILED_PART]
    whole = importlib.util.find_spec(_FRONT_END)
    places = None if whole is None else whole.submodule_search_locations
    spec = None if places is None else importlib.machinery.PathFinder.find_spec(_COMPILED_PART, places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{_FRONT_END}: there is no front end of cuDNN")
    made: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[_COMPILED_PART] = made
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[_COMPILED_PART]
        raise
    return made


@contextlib.contextmanager
def _in_place_of_the_whole() -> Iterator[None]:
    """Let the compiled part be found where it asks for the whole front end: for its type of tensors, which it has."""
    if _FRONT_END in sys.modules:
        yield
        return
    sys.modules[_FRONT_END] = library()
    try:
        yield
    finally:
        del sys.modules[_FRONT_END]


class Plan(PlanOfDevice):
    """A graph that is ready to run."""

    __slots__ = ("_execute", "_workspace")

    def __init__(self, dtype: str, describe: Callable[[Any], None], *given: object) -> None:
        """`describe` adds tensors, with numbers of their own, and operations to a graph, as follows from `given`.

        A graph is kept on disk: to choose a kernel for it and to compile that takes longer than a step.
        """
        name = name_for("graph", driver().identity(), library().backend_version(), dtype, CHOICES.repeatable, *given)
        graph = _kept(name)
        if graph is None:
            graph = _built(dtype, describe)
            _keep(name, graph)
        self._execute = graph._execute
        self._workspace: int = graph.get_workspace_size()

    def __call__(self, pointers: dict[int, int]) -> None:
        """Compute: for the number of each tensor its address."""
        stream = driver().queue()
        place, _ = scratch(self._workspace, stream) if self._workspace else (0, None)
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._execute, pointers, place, handle(stream))
        else:
            self._execute(pointers, place, handle(stream))


def _built(dtype: str, describe: Callable[[Any], None]) -> Any:
    """A graph with a plan."""
    api = library()
    kinds = api.data_type
    graph = api.pygraph(
        io_data_type=getattr(kinds, TYPES[dtype]),
        intermediate_data_type=kinds.FLOAT,
        compute_data_type=kinds.FLOAT,
        handle=handle(driver().queue()),
    )
    try:
        with _in_place_of_the_whole():
            describe(graph)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([api.heur_mode.A, api.heur_mode.FALLBACK])
        if CHOICES.repeatable:
            graph.deselect_numeric_notes([api.numerical_note.NONDETERMINISTIC])
        graph.deselect_workspace_greater_than(_MOST_WORKSPACE)
        graph.check_support()
        graph.build_plans()
    except (RuntimeError, ValueError, TypeError, AttributeError, api.cudnnGraphNotSupportedError) as error:
        raise Refused(str(error)) from error  # functions of another version may have other names and arguments
    return graph


def _keep(name: str, graph: Any) -> None:
    with contextlib.suppress(RuntimeError, ValueError):  # not every plan can be written down
        store(name, bytes(graph.serialize()))


def _kept(name: str) -> Any:
    """The graph that was kept on disk; None: there is none, or none that this front end reads."""
    content = load(name)
    if content is None:
        return None
    graph = library().pygraph()
    try:
        graph.deserialize(handle(driver().queue()), list(content))
    except (RuntimeError, ValueError, library().cudnnGraphNotSupportedError):
        return None
    return graph
