"""Gradients in buckets: parameters whose gradients travel together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor, new_counter, wrap

FIRST_BUCKET = 1 << 20
"""Bytes of the first bucket: small, so that the exchange begins early in the backward pass."""
MEGABYTE = 1 << 20
DEFAULT_MEGABYTES = 25


class Bucket:
    """One flat tensor, and for each parameter the part of it that has the shape of the gradient."""

    def __init__(self, parameters: Sequence[Tensor], empty: Callable[[int, Any], Any]) -> None:
        """`empty`: makes an array where collectives are quickest."""
        self.parameters = list(parameters)
        self._empty = empty
        self._count = sum(each.numel() for each in self.parameters)
        self._ends = list(itertools.accumulate(each.numel() for each in self.parameters))
        self.renew()
        self.missing = len(self.parameters)
        self.pending: Any = None
        """What is under way: a `Work`, or the future of a hook."""
        self.begun = False

    def renew(self) -> None:
        """Take other memory, whose content is anything: gradients that are parts of the old one keep that."""
        like = self.parameters[0].detach()
        if like._kind.is_cpu and not like._kind.dataless:
            self.buffer = wrap(self._empty(self._count, like._array.dtype), like.device)
        else:
            self.buffer = like.new_empty(self._count)
        flat, kind = self.buffer._array, self.buffer._kind
        bounds = zip([0, *self._ends], self._ends, self.parameters, strict=False)
        self.views = [
            Tensor._from_parts((flat[begin:end].reshape(each._array.shape), kind, new_counter()))
            for begin, end, each in bounds
        ]
        self.is_given_away = False
        """Whether gradients are parts of it, which the next pass must not write."""

    def parts(self) -> list[Tensor]:
        """The parts, to be written."""
        if self.is_given_away:
            self.renew()
        return self.views


class GradBucket:
    """What a communication hook sees of a bucket."""

    def __init__(self, bucket: Bucket, index: int, is_last: bool) -> None:
        self._bucket = bucket
        self._index = index
        self._is_last = is_last
        self._buffer = bucket.buffer

    def index(self) -> int:
        """Which bucket it is."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients of it, flat."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put other values in place of the gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, each in its shape."""
        found, start = [], 0
        for each in self._bucket.parameters:
            found.append(self._buffer[start : start + each.numel()].view(each.shape))
            start += each.numel()
        return found

    def parameters(self) -> list[Tensor]:
        """Whose gradients they are."""
        return self._bucket.parameters

    def is_last(self) -> bool:
        """Whether it is the last one of the backward pass."""
        return self._is_last


def divided(parameters: Sequence[Tensor], limits: Sequence[int]) -> list[list[int]]:
    """Which parameters go into which bucket, by their positions: in order, a dtype at a time, up to a size.

    The n-th bucket of a dtype has the n-th limit in bytes, and all further ones the last.
    """
    open_buckets: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    made: dict[Any, int] = {}
    buckets: list[list[int]] = []
    for position, each in enumerate(parameters):
        kind = (each.dtype, each.device)
        open_buckets.setdefault(kind, []).append(position)
        sizes[kind] = sizes.get(kind, 0) + each.numel() * each.element_size()
        number = made.get(kind, 0)
        if sizes[kind] >= limits[min(number, len(limits) - 1)]:
            buckets.append(open_buckets.pop(kind))
            sizes[kind], made[kind] = 0, number + 1
    buckets += open_buckets.values()
    return sorted(buckets, key=lambda bucket: bucket[0])
