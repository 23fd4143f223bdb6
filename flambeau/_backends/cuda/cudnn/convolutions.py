"""The three products of a convolution as plans of cuDNN's, started by one call each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ...._core.geometry.moving_windows import Geometry
from ...._core.process.gpu_choices import CHOICES
from ..memory.workspace import scratch
from ..runtime.any_gpu import common_gpu
from ..runtime.compile_queue import COMPILE_QUEUE
from ..runtime.devices import PlanOfDevice
from ..runtime.disk_cache import load, name_for, store
from ..runtime.driver import driver
from ..runtime.synchronization import HERE
from .common_gpu import described_gpu
from .descriptors import (
    ADDRESS,
    CHARACTER,
    DATA_TYPE,
    DESCRIPTOR,
    DOUBLE,
    FLOAT,
    HANDLE,
    HEURISTIC,
    INT64,
    MODE,
    NOTE,
    Attribute,
    Refused,
    check,
    closed,
    forget,
    handle,
    library,
    read,
    read_descriptors,
    read_text,
    version,
)

TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
"""What the library calls the types of elements."""
FORWARD, OF_INPUT, OF_WEIGHT = range(3)
_OPERATIONS = {FORWARD: (10, 700), OF_INPUT: (12, 706), OF_WEIGHT: (11, 712)}
"""For each product the descriptor of its operation, and the first of its attributes: both factors, the rule, weight,
input and output.
"""
_RULE, _ENGINE, _CONFIGURATION, _HEURISTICS, _PLAN, _GRAPH, _PACK, _TENSOR = 1, 2, 3, 4, 5, 15, 16, 17
_FOR_GPU = 204
"""Of heuristics: the GPU that they choose for, where it is not this one."""
_TEXT = 405
"""Of a plan: all that it is, to be read by the same version of the library."""
_MODE_A, _FALLBACK = 3, 2
_CROSS_CORRELATION = 1
_TENSOR_CORE, _SHORTENED, _NOT_REPEATABLE = 0, 1, 4
"""Notes about how a way computes."""
_MOST_NOTES, _MOST_WAYS, _ALIGNMENT = 10, 32, 16
_MOST_WORKSPACE = 1 << 30
_MOST_PACKS = 1024
"""Addresses come again from step to step: for so many sets of them a plan keeps what it is started with."""
_TRIALS, _REPETITIONS = 10, 3
"""How many ways are tried where the quickest is wanted, and how often each of them is timed."""


class Convolution(PlanOfDevice):
    """One of the products for arrays of given shapes and strides."""

    __slots__ = ("_execute", "_name", "_packs", "_plan", "_trials", "_workspace")
    _plan: int
    _workspace: int

    def __init__(
        self, product: int, dtype: str, forms: Sequence[Any], geometry: Geometry, plan: tuple[int, int] | None = None
    ) -> None:
        """`forms` are those of input, weight and output, with a batch and channels before the dimensions.

        `plan`: one of the library's that is there already, with the memory it needs.
        """
        self._execute = library().cudnnBackendExecute
        self._packs: dict[tuple[int, int, int, int], int] = {}
        self._trials: list[tuple[int, int]] = []
        if plan is not None:
            self._plan, self._workspace = plan
            return
        banned, wanted = _banned(dtype), _TRIALS if CHOICES.tried else 1
        layouts = [(form.shape, form.strides) for form in forms]
        given = product, dtype, layouts, geometry, sorted(banned), wanted, common_gpu()
        self._name = name_for("convolution", driver().identity(), version(), *given)
        plans = _kept(self._name)
        if not plans:
            plans = list(islice(_proposed(product, dtype, forms, geometry), wanted))
            if not plans:
                raise Refused("cuDNN: no way to compute this convolution")
            if len(plans) == 1:
                _keep(self._name, plans[0][0])
        self._plan, self._workspace = plans[0]
        if len(plans) > 1:
            self._trials = plans

    def __call__(self, input: int, weight: int, output: int) -> None:
        """Compute, given the addresses."""
        if self._trials and HERE.recording is None:
            self._choose(input, weight, output)
        stream = driver().queue()
        size = self._workspace
        place, memory = scratch(size, stream) if size else (0, None)
        key = input, weight, output, place
        pack = self._packs.get(key)
        if pack is None:
            pack = self._packed(key)
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._execute_in, handle(stream), self._plan, pack)
        else:
            check(self._execute(handle(stream), self._plan, pack))
        del memory  # now the kernels that use it are in the queue

    def _execute_in(self, *given: int) -> None:
        check(self._execute(*given))

    def _packed(self, key: tuple[int, int, int, int]) -> int:
        if len(self._packs) >= _MOST_PACKS:
            COMPILE_QUEUE.catch_up()
            for pack in self._packs.values():
                forget(pack)
            self._packs.clear()
        *places, workspace = key
        attributes = (1000, INT64, (1, 2, 3)), (1001, ADDRESS, places), (1003, ADDRESS, (workspace,))
        pack = self._packs[key] = closed(_PACK, attributes)
        return pack

    def _choose(self, *addresses: int) -> None:
        """Keep the quickest of the plans."""
        plans, self._trials = self._trials, []
        events = driver().library
        times: dict[tuple[int, int], float] = {}
        for each in plans:
            self._plan, self._workspace = each
            begin, end = events.Event(), events.Event()
            try:
                self(*addresses)
                begin.record()
                for _ in range(_REPETITIONS):
                    self(*addresses)
                end.record()
            except Refused:
                continue
            end.synchronize()
            times[each] = events.get_elapsed_time(begin, end)
        self._plan, self._workspace = min(times, key=lambda each: times[each]) if times else plans[0]
        _keep(self._name, self._plan)
        for plan, _ in plans:
            if plan != self._plan:
                forget(plan)


def several(
    product: int, dtype: str, forms: Sequence[Any], geometry: Geometry, most: int, own_gpu: bool
) -> Iterator[Convolution]:
    """Convolutions by plans of the library's, at most so many, the most promising first; for the device in use.

    `own_gpu`: the most promising for this GPU, else for all of its architecture, where they must do alike.
    """
    for plan in islice(_proposed(product, dtype, forms, geometry, own_gpu), most):
        yield Convolution(product, dtype, forms, geometry, plan)


def _proposed(
    product: int, dtype: str, forms: Sequence[Any], geometry: Geometry, own_gpu: bool = False
) -> Iterator[tuple[int, int]]:
    """The plans of ways that the program wants, each with the memory that it needs."""
    graph, banned = _graph(product, dtype, forms, geometry), _banned(dtype)
    for mode in (_MODE_A, _FALLBACK):
        for way in _ways(graph, mode, None if own_gpu else described_gpu()):
            if not banned & _notes(way):
                yield from _planned(way)


def _graph(product: int, dtype: str, forms: Sequence[Any], geometry: Geometry) -> int:
    """The graph of the one operation."""
    wide, factor = (TYPES["float64"], DOUBLE) if dtype == "float64" else (TYPES["float32"], FLOAT)
    rule = closed(
        _RULE,
        (
            (100, DATA_TYPE, (wide,)), (101, MODE, (_CROSS_CORRELATION,)), (102, INT64, geometry.dilation),
            (103, INT64, geometry.stride), (104, INT64, geometry.padding), (105, INT64, geometry.padding),
            (106, INT64, (len(geometry.stride),)),
        ),
    )  # fmt: skip
    input, weight, output = (_tensor(TYPES[dtype], number, form) for number, form in enumerate(forms, 1))
    kind, first = _OPERATIONS[product]
    attributes = [(first, factor, (1.0,)), (first + 1, factor, (0.0,))]
    attributes += [(first + place, DESCRIPTOR, (each,)) for place, each in enumerate((rule, weight, input, output), 2)]
    operation = closed(kind, attributes)
    return closed(_GRAPH, ((800, HANDLE, (handle(driver().queue()),)), (801, DESCRIPTOR, (operation,))))


def _tensor(kind: int, number: int, form: Any) -> int:
    strides = [step // form.itemsize for step in form.strides]
    return closed(
        _TENSOR,
        (
            (901, DATA_TYPE, (kind,)), (902, INT64, form.shape), (903, INT64, strides), (906, INT64, (number,)),
            (900, INT64, (_ALIGNMENT,)),
        ),
    )  # fmt: skip


def _ways(graph: int, mode: int, gpu: int | None) -> list[int]:
    """Configurations that the library proposes for a GPU, None for this one; the most promising first."""
    try:
        attributes: list[Attribute] = [(201, DESCRIPTOR, (graph,)), (200, HEURISTIC, (mode,))]
        if gpu is not None:
            attributes.append((_FOR_GPU, DESCRIPTOR, (gpu,)))
        found = closed(_HEURISTICS, attributes)
        return read_descriptors(found, 202, _CONFIGURATION, _MOST_WAYS)
    except Refused:
        return []


def _banned(dtype: str) -> set[int]:
    """The notes of ways that the program does not want."""
    found = set()
    if dtype == "float32" and not CHOICES.shortened_convolutions:
        found |= {_TENSOR_CORE, _SHORTENED}
    if CHOICES.repeatable:
        found.add(_NOT_REPEATABLE)
    return found


def _notes(way: int) -> set[int]:
    (engine,) = read_descriptors(way, 300, _ENGINE, 1)
    found = set(read(engine, 1303, NOTE, _MOST_NOTES))
    forget(engine)
    return found


def _planned(way: int) -> list[tuple[int, int]]:
    """The plan of a configuration with the memory it needs; nothing if the library cannot do it here."""
    return _plan_of((401, DESCRIPTOR, (way,)))


def _kept(name: str) -> list[tuple[int, int]]:
    """The plan that was kept on disk, likewise."""
    text = load(name)
    return [] if text is None else _plan_of((_TEXT, CHARACTER, text))


def _keep(name: str, plan: int) -> None:
    with contextlib.suppress(Refused):  # not every plan can be written down
        store(name, read_text(plan, _TEXT))


def _plan_of(attribute: Attribute) -> list[tuple[int, int]]:
    try:
        plan = closed(_PLAN, ((400, HANDLE, (handle(driver().queue()),)), attribute))
    except Refused:
        return []
    (size,) = read(plan, 402, INT64)
    if size > _MOST_WORKSPACE:
        forget(plan)
        return []
    return [(plan, size)]
