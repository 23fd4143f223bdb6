"""Segments of compiled programs on the device: lists of launches, and then one graph for all of them.

The first calls start the kernels one by one, and look where their inputs lie and which results are still in use when
the next call begins. Then the launches are captured as a graph, which every later call replays. A graph finds its
inputs and leaves its results where they were when it was captured:

- Inputs that stay where they are, as parameters do, are read and changed in place. Others are copied to a place of the
  graph's own before each replay. Every call compares the addresses; where one is another, the launches are captured
  anew.
- Results are tensors over the graph's own memory, which a replay would overwrite. So each call looks whether
  somebody still has one of the call before. If so, that memory stays with the result, the launches are captured anew,
  and from then on this result is copied out of the graph's memory.

Random numbers are those of a list of launches: a replay takes as many words of the generator (`recording.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ...._core.generator import default_generator
from ...._core.process.locks import new_lock
from ..arrays.array import DeviceArray, empty, is_dense, over, window
from ..memory.graph_results import ResultMemory
from .driver import driver
from .graph import Graph
from .synchronization import HERE

_WATCHED = 2
"""So many calls are watched before the launches are captured."""

_MOST_CAPTURES = 6
"""A segment whose inputs are elsewhere in every call is not captured for ever."""

_LARGE = 256 << 20
"""Inputs of more bytes are not copied: they are taken from where they are, or there is no graph."""

Arrays = Sequence[DeviceArray]


class GraphSegment:
    """One segment of a program. `listed` starts its kernels one by one; `written` are the inputs that it changes."""

    def __init__(self, listed: Callable[..., Any], written: Sequence[int]) -> None:
        self.listed = listed
        self.reason: str | None = None
        """Why it is no graph."""
        self.captures = 0
        self._written = frozenset(written)
        self._watched = 0
        self._captured: _Captured | None = None
        self._copied: set[int] = set()
        """The inputs that are elsewhere from call to call."""
        self._held: set[int] = set()
        """The results that somebody has when the next call begins."""
        self._places: list[int] = []
        self._results: list[Any] = []
        self._lock = new_lock()

    def __call__(self, *given: DeviceArray) -> Any:
        if self.reason is None and HERE.recording is None and self._lock.acquire(blocking=False):
            try:
                found = self._run(given)
            finally:
                self._lock.release()
            if found is not None:
                return found
        return self.listed(*given)

    def describe(self) -> str:
        """What has become of it, in words."""
        if self.reason is not None:
            return f"launches one by one: {self.reason}"
        if self._captured is None:
            return "launches one by one, until it is known where its inputs are"
        times = "once" if self.captures == 1 else f"{self.captures} times"
        copied, held = len(self._captured.copied), len(self._captured.held)
        return f"one graph, captured {times}; inputs copied in: {copied}, results copied out: {held}"

    def _run(self, given: Arrays) -> Any:
        """The results; None: the kernels are to be started one by one."""
        captured = self._captured
        if captured is not None:
            if captured.stream != driver().stream() or captured.has_aliases(given):
                return None
            moved, in_use = captured.moved(given), captured.results_in_use()
            if not moved and not in_use:
                return captured.run(given)
            self._copied.update(moved)
            self._held.update(in_use)
            self._captured = None
            driver().synchronize()  # a graph that is under way must not go
        elif self._watched < _WATCHED:
            if not self._watched:
                driver().pool.give_back()  # what plain calls were in is of other sizes, and may be too small by little
            self._look(given)
            self._watched += 1
            results = self.listed(*given)
            self._places = [each.pointer for each in given]
            self._results = [ref(each if each.base is None else each.base) for each in results]
            return results
        else:
            self._look(given)
        if self.captures == _MOST_CAPTURES:
            self.reason = "what it is given lies elsewhere in every call"
            return None
        self.captures += 1
        driver().pool.give_back()  # a graph has memory of its own: nobody needs what the launches one by one were in
        try:
            self._captured = _Captured(self.listed, given, self._chosen(given), self._written, frozenset(self._held))
        except Exception as error:  # whatever it is, the list of launches works
            self.reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            return None
        return self._captured.run(given)

    def _look(self, given: Arrays) -> None:
        """Compare with the call before."""
        if self._watched:
            places = [each.pointer for each in given]
            self._copied.update([at for at, place in enumerate(places) if place != self._places[at]])
            self._held.update([at for at, each in enumerate(self._results) if each() is not None])

    def _chosen(self, given: Arrays) -> list[int]:
        """The inputs to be copied."""
        return [
            at for at in sorted(self._copied - self._written) if is_dense(given[at].form) and given[at].nbytes <= _LARGE
        ]


class _Captured:
    """A graph, with what goes in and comes out."""

    def __init__(
        self,
        listed: Callable[..., Any],
        given: Arrays,
        copied: Sequence[int],
        written: frozenset[int],
        held: frozenset[int],
    ) -> None:
        self.stream = driver().stream()
        self.copied = copied
        self._written = written if copied else frozenset()
        self.held = held
        places = list(given)
        for at in copied:
            places[at] = empty(given[at].shape, given[at].dtype, given[at].strides if given[at].size else None)
        self._own = [(at, places[at], given[at].nbytes) for at in copied]
        self._fixed = [at for at in range(len(given)) if at not in copied]
        self._pointers = [given[at].pointer for at in self._fixed]
        self._graph = Graph()
        results = _captured(self._graph, listed, places)
        self._stays: list[ResultMemory] = []
        self._results: list[tuple[int, Any]] = []
        self._windows: list[tuple[int, int, int, DeviceArray]] = []
        """Results that are windows on inputs: which, on which, how far from its beginning, and what they are like."""
        self._groups: list[_Group] = []
        self._count = len(results)
        owners = {id(each.memory): at for at, each in enumerate(places)}
        groups: dict[int, list[int]] = {}
        for number, each in enumerate(results):
            owner = owners.get(id(each.memory))
            if owner is None:
                groups.setdefault(id(each.memory), []).append(number)
            else:
                self._windows.append((number, owner, each.pointer - places[owner].pointer, each))
        for numbers in groups.values():
            self._groups.append(_Group(numbers, [results[each] for each in numbers], not held.isdisjoint(numbers)))

    def has_aliases(self, given: Arrays) -> bool:
        """Whether an input that changes shares memory with one that would be copied before."""
        if not self._written:
            return False
        changed = {id(given[at].memory) for at in self._written}
        return any(id(given[at].memory) in changed for at in self.copied)

    def moved(self, given: Arrays) -> list[int]:
        """The inputs that are elsewhere, among those that are taken from where they were."""
        places = [given[at].pointer for at in self._fixed]
        if places == self._pointers:
            return []
        return [at for at, now, then in zip(self._fixed, places, self._pointers, strict=True) if now != then]

    def results_in_use(self) -> list[int]:
        """The results of the last call that somebody still has."""
        return [number for number, result in self._results if result() is not None]

    def run(self, given: Arrays) -> list[DeviceArray]:
        """Replay the graph; its results."""
        own = driver()
        for at, place, nbytes in self._own:
            own.copy(place.pointer, given[at].pointer, nbytes)
        self._graph.replay()
        found: list[Any] = [None] * self._count
        results = self._results = []
        for group in self._groups:
            if group.copied:
                memory: Any = own.allocate(group.nbytes)
                own.copy(memory.ptr, group.low, group.nbytes)
                group.hand_out(found, memory, memory.ptr)
            else:
                memory = ResultMemory(group.memory, self._stays)
                results.append((group.numbers[0], ref(memory)))
                group.hand_out(found, memory, group.low)
        for number, at, start, like in self._windows:
            found[number] = window(given[at], like.shape, like.dtype, start, like.strides)
        return found


class _Group:
    """Results that lie in one piece of memory."""

    def __init__(self, numbers: list[int], results: Arrays, copied: bool) -> None:
        self.numbers = numbers
        self.copied = copied
        self.memory = results[0].memory
        bounds = [_bounds(each) for each in results]
        self.low = min([low for low, _ in bounds])
        self.nbytes = max([high for _, high in bounds]) - self.low
        self._places = [(number, each, each.pointer - self.low) for number, each in zip(numbers, results, strict=True)]
        self._alone = len(results) == 1 and results[0].pointer == self.low

    def hand_out(self, found: list[Any], memory: Any, pointer: int) -> None:
        """Put the results, which begin at an address of a memory, into a list."""
        if self._alone:
            number, like, _ = self._places[0]
            found[number] = over(memory, pointer, like.shape, like.dtype, like.strides)
            return
        base = over(memory, pointer, (self.nbytes,), "u1")
        for number, like, start in self._places:
            found[number] = window(base, like.shape, like.dtype, start, like.strides)


def _bounds(array: DeviceArray) -> tuple[int, int]:
    """The addresses between which the elements are."""
    low = high = array.pointer
    if array.size:
        for size, step in zip(array.shape, array.strides, strict=True):
            low += min(0, (size - 1) * step)
            high += max(0, (size - 1) * step)
        high += array.itemsize
    return low, high


_streams: dict[tuple[int, int], Any] = {}
"""For each queue of a device the one in which launches are captured that it is to replay: libraries keep memory for
each."""


def _captured(graph: Graph, listed: Callable[..., Any], places: Arrays) -> Any:
    """Capture the launches on arrays; the results, which have no elements before the graph is replayed."""
    own = driver()
    queue = own.ordinal, own.stream()
    if queue not in _streams:
        _streams[queue] = own.library.Stream(non_blocking=True)
    before, drawn = own.library.get_current_stream(), default_generator.state_bytes()
    own.use_stream(_streams[queue])
    try:
        graph.begin()
        try:
            results = listed(*places)
        except BaseException:
            graph.abandon()
            raise
        graph.end()
    finally:
        own.use_stream(before)
        draws = not np.array_equal(default_generator.state_bytes(), drawn)
        if draws:
            default_generator.set_state_bytes(drawn)
    if draws:
        raise RuntimeError("it draws from the generator of the CPU")
    return results
