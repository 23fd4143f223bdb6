"""The pool: all memory of the device that arrays lie in, and that of the library underneath too.

It asks the device for segments and cuts blocks from them; nothing goes back to the device before somebody asks for it,
or there is no room. Every block belongs to the queue (stream) in which it was asked for: what comes later there may
have it as soon as nothing refers to it, since a queue's work is done in order. A block that other queues use too waits
for them. While a graph is recorded, blocks come from a pool of its own: they stay where they are as long as it does.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

from ...._core.process.caller import warn_user_once
from ...._core.process.locks import new_reentrant_lock
from .block import FREE, KEPT, UNIT, USED, Block, Heap, PooledMemory, Shelf, neighbours, segment_size
from .history import History
from .ranges import Range, Space
from .settings import settings_of
from .statistics import LONGEST, SMALL, Statistics

_new = object.__new__
COMMON = 0
"""The pool of everybody."""


class Exhausted(Exception):
    """The device has no memory left."""


class Supplier(Protocol):
    """The device, as the pool needs it."""

    def take(self, nbytes: int) -> int:
        """The address of memory from the device; `Exhausted` if there is none."""

    def give(self, pointer: int) -> None:
        """Return what `take` gave, when everything that was started is done."""

    def stream(self) -> int:
        """The handle of the queue in use."""

    def mark(self, ordinal: int, stream: int) -> Any:
        """A mark in a queue of a device."""

    def finish(self) -> None:
        """Wait for everything that was started on the device."""

    def reached(self, mark: Any) -> bool:
        """Whether a queue has come to a mark."""

    def wait_for(self, mark: Any) -> None:
        """Wait until it has."""

    def memory(self) -> tuple[int, int]:
        """How many bytes of the device are free, and how many there are."""


class _Replaced:
    """A supplier whose memory comes from elsewhere."""

    def __init__(self, found: Supplier, source: Any) -> None:
        self._source = source
        self._sizes: dict[int, int] = {}
        self.stream, self.mark, self.reached = found.stream, found.mark, found.reached
        self.wait_for, self.memory, self.finish = found.wait_for, found.memory, found.finish

    def take(self, nbytes: int) -> int:
        pointer = int(self._source.take(nbytes, self.stream()))
        if not pointer:
            raise Exhausted
        self._sizes[pointer] = nbytes
        return pointer

    def give(self, pointer: int) -> None:
        self._source.give(pointer, self._sizes.pop(pointer))


class _Stand(NamedTuple):
    """The shelves of a queue in a pool."""

    small: Shelf
    large: Shelf
    homes: dict[int, Heap]
    """For the bytes of a request where its shelf keeps the blocks for it: most requests repeat one of before."""


_NOTHING_KNOWN: dict[int, Heap] = {}
_MOST_HOMES = 1 << 14


class _Here(threading.local):
    """Where a thread takes its memory from."""

    pool = COMMON
    stand: _Stand | None = None
    homes = _NOTHING_KNOWN
    """The heaps of free blocks of `stand`, by the size in bytes."""


class Pool:
    """Hands out memory. Sizes of segments and blocks are those of PyTorch's allocator, and so are the numbers."""

    def __init__(self, supplier: Supplier, exhausted: Callable[[int, Pool], Exception], ordinal: int = 0) -> None:
        self.ordinal = ordinal
        """The device whose memory it is."""
        self._supplier = supplier
        self._exhausted = exhausted
        self._lock = new_reentrant_lock()
        self._here = _Here()
        self._stands: dict[tuple[int, int], _Stand] = {}
        """For each pool and queue."""
        self._segments: dict[int, tuple[Block, int]] = {}
        """For the address of a segment its first block, and its size."""
        self._came_back: list[Block] = []
        """Blocks that nobody needs, and that other queues still use: marks in these are to be set."""
        self._marked: deque[tuple[list[Any], Block]] = deque()
        self._holders: dict[int, int] = {}
        """For each private pool how many graphs and contexts use it."""
        self._sources: dict[int, Supplier] = {}
        """For private pools whose segments come from elsewhere."""
        self.space: Space | None = None
        """Where segments that grow get their addresses; None: the device has none."""
        self._ranges: dict[Shelf, Range] = {}
        """The segments that grow."""
        self._uncut: set[int] = set()
        """The private pools that never cut a segment."""
        self._reserves: list[int] = []
        """The private pools whose free blocks serve others when the device has no memory left."""
        self._numbers = itertools.count(1)
        self._recording = 0
        self.statistics = Statistics()
        self.limit: int | None = None
        self.settings = settings_of()
        self._has_begun = False
        self.history: History | None = None
        """What is written down of every step, if anything is."""
        self.keeps = True
        """Whether freed segments stay here: see `keep`."""
        self._shared = 0
        """How many blocks are in use by several queues."""
        self._journal = self.statistics.journal
        self._patience = LONGEST
        """How long the journal may become before a request does more than its own business; -1: while anything unusual
        goes on."""

    def keep(self, value: bool) -> None:
        """Whether segments in which nothing is in use stay here, or go back to the device with the next request."""
        self.keeps = value
        self._patience = -1

    # ----- taking and giving back -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> PooledMemory:
        """Memory, uninitialised; it comes back when nothing refers to it."""
        journal = self._journal
        if len(journal) > self._patience:
            self._do_special()
        try:
            block = heappop(self._here.homes[nbytes])[1]
        except LookupError:
            block = self._found(nbytes)
        block.state = USED
        block.requested = nbytes
        journal.extend((block.size, nbytes))
        if self.history is not None:
            self.history.allocated(block)
        memory = _new(PooledMemory)
        memory.ptr = block.pointer
        memory.block = block
        return memory

    def _do_special(self) -> None:
        """What a request does beside its own business while anything unusual goes on."""
        with self._lock:
            self._collect()
            if not self.keeps:
                self.give_back()
            unusual = self._came_back or self._marked or not self.keeps or self._shared
            self._patience = -1 if unusual else LONGEST

    def shelves_in_use(self) -> int:
        """What tells the queue and the pool from which this thread takes memory."""
        return id(self._here.stand or self.stream_changed())

    def stream_changed(self) -> _Stand:
        """Look anew from where this thread takes memory: its queue or its pool is another one."""
        key = self._here.pool, self._supplier.stream()
        found = self._stands.get(key)
        if found is None:
            found = self._stands[key] = _Stand(self._shelf(*key, True), self._shelf(*key, False), {})
        self._here.stand, self._here.homes = found, found.homes
        return found

    def _shelf(self, pool: int, stream: int, small: bool) -> Shelf:
        splits = pool not in self._uncut
        return Shelf(pool, stream, small, self.statistics.journal, self._came_back, self.ordinal, self.settings, splits)

    def _found(self, nbytes: int) -> Block:
        """A block where none is kept for such a request, as far as is known."""
        size = self.settings.rounded(nbytes, UNIT)
        with self._lock:
            stand = self._here.stand or self.stream_changed()
            shelf = stand.large if size > SMALL else stand.small
            if len(stand.homes) >= _MOST_HOMES:
                stand.homes.clear()
            home = stand.homes[nbytes] = shelf.kept.setdefault(size, [])
            with contextlib.suppress(IndexError):
                return heappop(home)[1]
            block = shelf.best(size)
            if block is None and shelf.may_settle() and shelf.settle():
                block = shelf.best(size)
            return self._cut_from_new(shelf, size, nbytes) if block is None else block

    def _cut_from_new(self, shelf: Shelf, size: int, nbytes: int) -> Block:
        """A block of new memory or, where the device has no room for it, of what is left when all is joined."""
        if not self._has_begun:
            self._begin()
        take = self._grown if self._may_grow(shelf) else self._new_segment
        block = take(shelf, size)
        if block is None:
            self.statistics.retries += 1
            self.give_back()
            block = take(shelf, size) or shelf.best(size) or self._from_reserves(shelf, size)
        if block is None:
            self.statistics.failures += 1
            if self.history is not None:
                self.history.failed(nbytes, shelf.stream, self.device_memory()[0])
            raise self._exhausted(nbytes, self)
        return block

    def _new_segment(self, shelf: Shelf, size: int) -> Block | None:
        """A block of a new segment; None: the device has no room for one."""
        wanted = segment_size(size)
        if self.settings.collection_threshold:
            self._return_unused(wanted)
        pointer = self._from_device(wanted, shelf.pool)
        if pointer is None:
            return None
        block = Block(pointer, wanted, shelf)
        shelf.reserved += wanted
        self._segments[pointer] = block, wanted
        self.statistics.segment(wanted, shelf.small, 1)
        if self.history is not None:
            self.history.segment("segment_alloc", block, wanted)
        return shelf.cut(block, size)

    # ----- segments that grow -----------------------------------------------------------------------------------------

    def _may_grow(self, shelf: Shelf) -> bool:
        """Whether the segment of a shelf grows, in place of many of fixed sizes."""
        if not self.settings.expandable or shelf.pool in self._sources or isinstance(self._supplier, _Replaced):
            return False
        if self.space is None or not self.space.is_supported():
            warn_user_once("expandable_segments not supported on this platform: segments have fixed sizes here")
            return False
        return True

    def _grown(self, shelf: Shelf, size: int) -> Block | None:
        """A block of memory that is mapped where the shelf's segment has none; None: the device has no more."""
        assert self.space is not None
        found = self._ranges.get(shelf)
        if found is None:
            total = -(-self.device_memory()[1] // (160 << 20)) * (180 << 20)  # some more, for what lies scattered
            found = self._ranges[shelf] = Range(self.space.reserve(total), total, shelf)
        place = found.hole_for(size)
        if place is None:
            return None
        hole, wanted = place
        if self.limit is not None and self.reserved() + wanted > self.limit:
            return None
        if not self.space.map(hole.pointer, wanted, found.piece):
            return None
        shelf.reserved += wanted
        self.statistics.mapped(wanted, shelf.small)
        if self.history is not None:
            self.history.segment("segment_map", hole, wanted)
        block = found.mapped(hole, wanted)
        shelf.remove(block)
        return shelf.cut(block, size)

    def _shrink(self, shelf: Shelf) -> None:
        """Take the memory from behind what is free in a segment that grows."""
        found = self._ranges.get(shelf)
        if found is None or self.space is None or self._recording:  # a record may be about what is free now
            return
        waited = False
        for _, _, block in tuple(shelf.ordered):
            if not found.base <= block.pointer < found.base + found.size or block.state != FREE:
                continue
            hole = found.unmapped(block)
            if hole is not None:
                if not waited:
                    self._supplier.finish()
                    waited = True
                self.space.unmap(*hole, found.piece)
                shelf.reserved -= hole[1]
                self.statistics.mapped(-hole[1], shelf.small)
                if self.history is not None:
                    self.history.segment("segment_unmap", Block(*hole, shelf), hole[1])
        if found.is_empty():
            del self._ranges[shelf]
            self.space.release(found.base, found.size)

    def _from_reserves(self, wanting: Shelf, size: int) -> Block | None:
        """A block of a private pool that is there for this case, where one has room for the same queue."""
        for pool in self._reserves:
            stand = self._stands.get((pool, wanting.stream))
            if stand is not None and pool != wanting.pool:
                shelf = stand.small if wanting.small else stand.large
                shelf.settle()
                found = shelf.best(size)
                if found is not None:
                    return found
        return None

    def _begin(self) -> None:
        """Know the device before its first segment."""
        self._has_begun = True
        if self.settings.fraction is not None and self.limit is None:
            self.limit = int(self.settings.fraction * self.device_memory()[1])

    def configure(self, text: str) -> None:
        """Take settings in the form of `PYTORCH_CUDA_ALLOC_CONF`; blocks that are there stay as they are."""
        with self._lock:
            self.settings.read(text)
            for stand in self._stands.values():
                stand.homes.clear()
            if self.settings.fraction is not None:
                self.limit = int(self.settings.fraction * self.device_memory()[1])

    def _return_unused(self, wanted: int) -> None:
        """Return unused segments, large ones first, where the next one would exceed the threshold."""
        allowed = self.device_memory()[1] if self.limit is None else self.limit
        excess = self.reserved() + wanted - int(self.settings.collection_threshold * allowed)
        if excess <= 0:
            return
        self._collect()
        found = [
            (block, stand.large)
            for (pool, _), stand in tuple(self._stands.items())
            if pool == COMMON
            for block in stand.large.whole()
        ]
        for block, shelf in sorted(found, key=lambda each: -each[0].size):
            if excess > 0:
                excess -= block.size
                self._return(block, shelf)
            else:
                shelf.put_back(block)

    def _return(self, block: Block, shelf: Shelf) -> None:
        del self._segments[block.pointer]
        shelf.reserved -= block.size
        self.statistics.segment(block.size, shelf.small, -1)
        if self.history is not None:
            self.history.segment("segment_free", block, block.size)
        self._sources.get(shelf.pool, self._supplier).give(block.pointer)

    def _from_device(self, wanted: int, pool: int) -> int | None:
        if self.limit is not None and self.reserved() + wanted > self.limit:
            return None
        try:
            return self._sources.get(pool, self._supplier).take(wanted)
        except Exhausted:
            return None

    def _collect(self) -> None:
        """Put what came back on its shelf, as far as no queue needs it any more."""
        counted = self.statistics
        if len(self._journal) > LONGEST:
            counted.add_up()
        while self._came_back:
            block = self._came_back.pop()
            counted.waiting(block.size, block.shelf.small, 1)
            self._marked.append(([], block))
        if self._marked and not self._recording:  # a mark would become part of the record
            self._look_at_marks(wait=False)

    def _look_at_marks(self, wait: bool) -> None:
        for _ in range(len(self._marked)):
            marks, block = self._marked.popleft()
            if not marks:
                marks = [self._supplier.mark(*each) for each in sorted(block.users or ())]
            if wait:
                for mark in marks:
                    self._supplier.wait_for(mark)
            if all(self._supplier.reached(mark) for mark in marks):
                block.users = None
                self._shared -= 1
                if self.history is not None:
                    self.history.completed(block)
                self.statistics.waiting(block.size, block.shelf.small, -1)
                block.state = KEPT
                heappush(block.home, (block.pointer, block))
            else:
                self._marked.append((marks, block))

    def used_by(self, memory: PooledMemory, ordinal: int, stream: int) -> None:
        """Another queue, of any device, works with a memory: it is not handed out again before that is done."""
        block, user = memory.block, (ordinal, stream)
        if user != (block.shelf.ordinal, block.shelf.stream):
            with self._lock:
                self._shared += block.users is None
                block.users = {user} if block.users is None else block.users | {user}
                self._patience = -1

    def give_back(self) -> None:
        """Return to the device the segments in which nothing is in use."""
        with self._lock:
            self._collect()
            if self._marked and not self._recording:
                self._look_at_marks(wait=True)
            for (pool, _), stand in tuple(self._stands.items()):
                if pool != COMMON and self._holders.get(pool):
                    continue
                for shelf in (stand.small, stand.large):
                    for block in shelf.whole():
                        self._return(block, shelf)
                    self._shrink(shelf)

    def take_segments_from(self, source: Any, pool: int = COMMON) -> None:
        """Let another one's `take` and `give` supply the segments: all of them, or those of a private pool."""
        if pool == COMMON:
            self._supplier = _Replaced(self._supplier, source)
        else:
            self._sources[pool] = _Replaced(self._supplier, source)

    # ----- pools of their own -----------------------------------------------------------------------------------------

    def new_pool(self, is_reserve: bool = False, splits: bool = True) -> int:
        """The number of a pool that only those who name it use; its free blocks also serve others when the device has
        no memory left, if it is a reserve."""
        number = next(self._numbers)
        if is_reserve:
            self._reserves.append(number)
        if not splits:
            self._uncut.add(number)
        return number

    def hold(self, pool: int) -> None:
        """Let what a private pool has stay where it is until `let_go`."""
        with self._lock:
            self._holders[pool] = self._holders.get(pool, 0) + 1

    def let_go(self, pool: int) -> None:
        """One who held it does not any more; after the last, its memory can go back to the device."""
        with self._lock:
            self._holders[pool] -= 1
            if not self._holders[pool]:
                del self._holders[pool]
                if pool in self._reserves:
                    self._reserves.remove(pool)

    def holders(self, pool: int) -> int:
        """How many hold a private pool."""
        return self._holders.get(pool, 0)

    @contextlib.contextmanager
    def taking_from(self, pool: int, recording: bool = False) -> Iterator[None]:
        """A context in which this thread's memory comes from a private pool."""
        here = self._here
        before = here.pool
        here.pool, here.stand, here.homes = pool, None, _NOTHING_KNOWN
        self._recording += recording
        try:
            yield
        finally:
            self._recording -= recording
            here.pool, here.stand, here.homes = before, None, _NOTHING_KNOWN

    # ----- what there is ----------------------------------------------------------------------------------------------

    def counted(self) -> Statistics:
        """The numbers, up to date."""
        with self._lock:
            if self.keeps:
                self._collect()
            else:
                self.give_back()
            self.statistics.add_up()
            return self.statistics

    def _count_splits(self) -> None:
        found: dict[bool, list[int]] = {True: [], False: []}
        for _, _, blocks in self.segments():
            first = blocks[0]
            if any(block.state == USED for block in blocks):
                found[first.shelf.small] += [block.size for block in blocks if block.state != USED]
        self.statistics.splits(found)

    def table(self) -> OrderedDict[str, int]:
        """The statistics of the pool, as PyTorch's `memory_stats` has them."""
        with self._lock:
            counted = self.counted()
            self._count_splits()
            found = counted.table()
            found["max_split_size"] = -1 if self.settings.max_split_size is None else self.settings.max_split_size
            return found

    def allocated(self) -> int:
        """The bytes of the blocks in use."""
        return self.counted().gauges["allocated_bytes.all"].current

    def reserved(self) -> int:
        """The bytes of all segments."""
        return self.statistics.gauges["reserved_bytes.all"].current

    def device_memory(self) -> tuple[int, int]:
        """How many bytes of the device are free, and how many there are."""
        return self._supplier.memory()

    def segments(self, pool: int | None = None) -> list[tuple[int, int, list[Block]]]:
        """The address and the size of each segment, of one pool or of all, with its blocks."""
        with self._lock:
            self._collect()
            found = [(pointer, size, neighbours(first)) for pointer, (first, size) in self._segments.items()]
            for each in self._ranges.values():
                found += [(run[0].pointer, sum(block.size for block in run), run) for run in each.runs()]
            return sorted(each for each in found if pool is None or each[2][0].shelf.pool == pool)

    def grows(self, block: Block) -> bool:
        """Whether a block is in a segment that grows."""
        found = self._ranges.get(block.shelf)
        return found is not None and found.base <= block.pointer < found.base + found.size


def exhausted(nbytes: int, pool: Pool) -> Exception:
    """The error for a request that the device has no room for: who holds its memory, and what the pool keeps."""
    from ...._core.text.memory_errors import DeviceState, out_of_device_memory
    from ..arrays.array import DeviceArray

    state = DeviceState(pool.ordinal, *pool.device_memory(), pool.allocated(), pool.reserved(), pool.limit)
    return out_of_device_memory(nbytes, state, DeviceArray)
