"""The step that leaves each worker its share of the samples."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from enum import IntEnum
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Between whom samples are divided; the first of those given is the outermost division."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[Any]):
    """A pipe that can be told its share."""

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES) -> None:
        """Take share `instance_id` of so many."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """One sample of n, starting with the one that has the share's number; all of them until shares are given."""

    def __init__(
        self, source_datapipe: IterDataPipe[Any], sharding_group_filter: SHARDING_PRIORITIES | None = None
    ) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Take share `instance_id` of so many, among those of a kind."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = num_of_instances, instance_id
        wanted = [share for group, share in sorted(self.groups.items()) if self.sharding_group_filter in (None, group)]
        self.num_of_instances, self.instance_id = 1, 0
        for number, own in wanted:
            self.instance_id += self.num_of_instances * own
            self.num_of_instances *= number

    def __iter__(self) -> Iterator[Any]:
        for number, sample in enumerate(self.source_datapipe):
            if number % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        if not isinstance(self.source_datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        whole, rest = divmod(len(self.source_datapipe), self.num_of_instances)
        return whole + (1 if self.instance_id < rest else 0)
