"""Steps that make batches, take them apart, and gather samples by a key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import check_picklable

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Lists of `batch_size` samples; the last may be shorter, or is dropped."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type[DataChunk[Any]] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The samples of batches, of batches of batches (2), or of whatever lists there are (-1)."""

    def __init__(self, datapipe: IterDataPipe[Any], unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator[Any]:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        holds_more = isinstance(element, list)
        if unbatch_level == 0 or (unbatch_level == -1 and not holds_more):
            yield element
            return
        if not holds_more:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for item in element:
            yield from self._dive(item, unbatch_level if unbatch_level == -1 else unbatch_level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Lists of samples with the same key: as soon as one has `group_size`, or at the end.

    Where the buffer is full, the largest group comes early, if it has `guaranteed_group_size`; smaller ones are dropped
    with `drop_remaining`, or else an error. With `keep_key` a group is a pair of key and list.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(["a1", "b1", "a2"]).groupby(group_key_fn=min))
    [['a1', 'b1'], ['a2']]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        check_picklable(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size: int | None = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining

    def _result(self, key: Any, group: list[Any]) -> Any:
        return (key, group) if self.keep_key else group

    def _room(self, groups: dict[Any, list[Any]]) -> Any:
        """Take the largest group out of a full buffer: what is to be handed out, or None if it is dropped."""
        key = max(groups, key=lambda each: len(groups[each]))
        group = groups.pop(key)
        wanted = self.guaranteed_group_size
        if wanted is not None and len(group) < wanted:
            if self.drop_remaining:
                return None
            raise RuntimeError("Failed to group items", str(group))
        return self._result(key, group)

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        held = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            groups[key].append(sample)
            held += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                group = groups.pop(key)
                held -= len(group)
                yield self._result(key, group)
            if held == self.max_buffer_size:
                result = self._room(groups)
                held = sum(map(len, groups.values()))
                if result is not None:
                    yield result
        while groups:
            key = next(iter(groups))
            yield self._result(key, groups.pop(key))
