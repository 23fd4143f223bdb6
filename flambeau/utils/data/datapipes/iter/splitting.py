"""Steps that make several pipes of one: all samples for each of them, or each sample for one of them."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sized
from typing import Any

from .._decorator import functional_datapipe
from .._iteration import described
from ..datapipe import IterDataPipe
from ..utils.common import check_picklable


def _check_split(step: str, num_instances: int, buffer_size: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size < 0:
        warnings.warn(
            f"Unlimited buffer size is set for `{step}`, please be aware of OOM at random places",
            UserWarning,
            stacklevel=4,
        )


class _Split(IterDataPipe[Any]):
    """The source of several children, and what some of them have not read yet."""

    def __init__(self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int) -> None:
        super().__init__()
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self.round = 0
        self._begin()

    def _begin(self) -> None:
        """Read from the start again: every iterator of before is at its end."""
        self.round += 1
        self._source: Iterator[Any] | None = None
        self._waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._over = [False] * self.num_instances
        self._started = [False] * self.num_instances

    def join(self, child: int) -> int:
        """A child starts to read: a new round if it has read of this one already. The number of the round."""
        if self._started[child]:
            if not all(self._over):
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=4,
                )
            self._begin()
        self._started[child] = True
        return self.round

    def next_for(self, child: int) -> Any:
        """The next sample of one child."""
        waiting = self._waiting[child]
        if self._source is None:
            self._source = iter(self.main_datapipe)
        while not waiting:
            try:
                sample = next(self._source)
            except StopIteration:
                self._over[child] = True
                raise
            self._hand_out(sample)
            waiting_elsewhere = self._elsewhere(child)
            if 0 <= self.buffer_size < waiting_elsewhere:
                self._source = iter(())
                raise BufferError(self._overflow())
        return waiting.popleft()

    def _hand_out(self, sample: Any) -> None:
        raise NotImplementedError

    def _elsewhere(self, child: int) -> int:
        raise NotImplementedError

    def _overflow(self) -> str:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} is read by its children")

    def __getstate__(self) -> Any:
        fresh = {name: value for name, value in vars(self).items() if name not in ("_source", "_waiting")}
        hook = IterDataPipe.getstate_hook
        return hook(fresh) if hook is not None else fresh

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the pipes that a split makes."""

    _counts_its_iterators = True

    def __init__(self, main_datapipe: _Split, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return _ChildIterator(self.main_datapipe, self.instance_id)

    def __len__(self) -> int:
        if isinstance(self.main_datapipe, Sized):
            return len(self.main_datapipe)
        raise TypeError


class _ChildIterator(Iterator[Any]):
    """An iterator of one child, good for as long as no child has started a new round."""

    def __init__(self, split: _Split, child: int) -> None:
        self._split = split
        self._child = child
        self._round = split.join(child)

    def __next__(self) -> Any:
        if self._round != self._split.round:
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the "
                f"ChildDataPipes of {described(self._split)}."
            )
        return self._split.next_for(self._child)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several pipes with all samples each; what one has read and another has not waits in a buffer."""

    def __new__(  # the step makes other pipes
        cls, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> Any:
        _check_split("fork", num_instances, buffer_size)
        copiers: dict[str | None, Callable[[Any], Any] | None] = {
            None: None,
            "shallow": copying.copy,
            "deep": copying.deepcopy,
        }
        if copy not in copiers:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        if num_instances == 1:
            return datapipe
        split = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copiers[copy])
        return [_ChildDataPipe(split, child) for child in range(num_instances)]

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("fork makes other pipes")


class _ForkerIterDataPipe(_Split):
    """Every sample for every child."""

    def __init__(
        self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int, copier: Callable[[Any], Any] | None
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self._copier = copier

    def _hand_out(self, sample: Any) -> None:
        for waiting in self._waiting:
            waiting.append(sample if self._copier is None else self._copier(sample))

    def _elsewhere(self, child: int) -> int:
        return max(map(len, self._waiting))

    def _overflow(self) -> str:
        return f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient."

    def __len__(self) -> int:
        return len(self.main_datapipe)


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipes, and for each sample the number of the one that it goes to, or None for none of them."""

    def __new__(  # the step makes other pipes
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        if num_instances >= 1:
            check_picklable(classifier_fn)
        _check_split("demux", num_instances, buffer_size)
        split = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(split, child) for child in range(num_instances)]

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("demux makes other pipes")


class _DemultiplexerIterDataPipe(_Split):
    """Every sample for the child that a function names."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def _hand_out(self, sample: Any) -> None:
        number = self.classifier_fn(sample)
        if number is None and self.drop_none:
            return
        if number is None or not 0 <= number < self.num_instances:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                f"{number} is returned."
            )
        self._waiting[number].append(sample)

    def _elsewhere(self, child: int) -> int:
        return sum(map(len, self._waiting)) - len(self._waiting[child])

    def _overflow(self) -> str:
        return f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
