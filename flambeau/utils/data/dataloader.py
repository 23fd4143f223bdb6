"""`DataLoader`: batches of a dataset, prepared ahead by worker processes or threads."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ..._core.generator import Generator
from ..._core.process.platform import refuse_in_browser
from ..._core.process.tracebacks import leave_out_library
from ._utils import collate as _collate
from ._utils import pipes
from ._utils.fetch import _BaseDatasetFetcher, _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.pin_memory import pin_memory, pins
from ._utils.progress import Progress, check_state, finish_epoch, replayed
from ._utils.worker import DATA, END, FAILURE, MULTIPROCESSING, THREAD, Result, WorkerSetup, get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, random_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
State = dict[str, Any]
_collate_fn_t = Callable[[list[Any]], Any]
"""What joins examples to a batch."""

default_collate = _collate.default_collate
default_convert = _collate.default_convert


class _DatasetKind:
    """Which of the two kinds a dataset is."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        """What takes batches from a dataset of this kind."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """The "indices" of a dataset that has none."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset.

    With `num_workers` above 0, batches are prepared ahead, `prefetch_factor` of them by each worker. Workers are
    processes, or with `worker_method="thread"` threads, which share the dataset and start at once, but compute in
    parallel only where Python's lock is released. In a thread, `get_worker_info().rng` has generators of its own.

    For the same seed, samples come in the same order and process workers have the same seeds as in PyTorch.

    `state_dict()` says how far the current epoch has come. After `load_state_dict()`, the next iteration continues
    there: with the same order, without loading what was delivered, and with each worker's random numbers where they
    were. What workers had prepared but not delivered is prepared again. The samples of an `IterableDataset` that were
    delivered are taken and dropped. A sampler with a state of its own may have `state_dict` and `load_state_dict`, too.

    >>> from flambeau.utils.data import DataLoader
    >>> [batch.tolist() for batch in DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]

    Args:
        dataset (Dataset): the dataset.
        batch_size (int, optional): how many samples a batch has; None gives single samples. Default: `1`.
        shuffle (bool, optional): whether samples come in a new random order in each pass.
        sampler (Sampler or iterable, optional): gives the indices of samples, in place of `shuffle`.
        batch_sampler (Sampler] or Iterable[list], optional): gives lists of indices, in place of `batch_size`,
            `shuffle`, `sampler` and `drop_last`.
        num_workers (int): how many processes load samples; 0 loads them in this one. Default: `0`.
        collate_fn (Callable, optional): makes a batch of a list of samples; None means `default_collate`.
        pin_memory (bool): whether batches are copied to page-locked memory, from which copies to a GPU run beside
            other work. Default: `False`.
        drop_last (bool): whether samples that do not fill a batch, or a share for all processes, are left out.
            Default: `False`.
        timeout (float): how many seconds to wait for a batch of a worker; 0 waits for ever. Default: `0`.
        worker_init_fn (Callable, optional): called in each worker with its number, before it loads.
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver", or a context.
        generator (Generator, optional): the source of random numbers; None means the default one.
        prefetch_factor (int, optional): how many batches each worker prepares ahead; None means 2.
        persistent_workers (bool): whether workers stay for the next pass. Default: `False`.
        pin_memory_device (str): the device for which memory is page-locked. Default: `""`.
        in_order (bool): whether batches come in the order of the sampler, or as they are ready. Default: `True`.
        worker_method (str): "multiprocessing" for processes, or "thread". Default: `"multiprocessing"`.

    Raises:
        ValueError: options contradict each other, as `shuffle` and `sampler` do, or a number is negative.
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler[Any] | Iterable[Any]
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False
    __multiprocessing_context: Any = None

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_method: str = MULTIPROCESSING,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, worker_method)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.worker_method = worker_method
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if pipes.is_iter_pipe(dataset):
            if num_workers and worker_method == THREAD:
                raise ValueError("a pipe has one iterator at a time: the workers that read it are processes")
            self.dataset = pipes.with_shuffle(dataset, shuffle)
            shuffle = None
        if self._is_iterable():
            _check_iterable(shuffle, sampler, batch_sampler)
        batch_size, drop_last = _check_batches(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if sampler is None:
            sampler = self._default_sampler(dataset, bool(shuffle), generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self._progress: Progress | None = None
        self._resume: State | None = None
        self.check_worker_number_rationality()

    def _default_sampler(self, dataset: Any, shuffle: bool, generator: Generator | None) -> Sampler[Any]:
        if self._is_iterable():
            return _InfiniteConstantSampler()
        return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)

    def __setattr__(self, attr: str, val: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and attr in fixed:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started: a context of `multiprocessing`, or None for the default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = self._checked_context(context)
        self.__multiprocessing_context = context

    def _checked_context(self, context: Any) -> Any:
        if self.num_workers == 0 or self.worker_method == THREAD:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                f"but got num_workers={self.num_workers} and worker_method={self.worker_method!r}"
            )
        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {methods!r}, "
                    f"but got multiprocessing_context={context!r}"
                )
            return multiprocessing.get_context(context)
        if not isinstance(context, multiprocessing.context.BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying the start "
                f"method, but got multiprocessing_context={context}"
            )
        return context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _is_iterable(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality(stacklevel=4)
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None or self._iterator._has_ended():
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if not self._is_iterable():
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]  # a TypeError if it has none
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self, stacklevel: int = 3) -> None:
        """Warn of more worker processes than there are processors to run them."""
        if not self.num_workers or self.worker_method == THREAD:
            return
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if usable is not None and self.num_workers > usable:
            message = (
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {usable}: more of them may make loading slower or exhaust memory."
            )
            warnings.warn(message, UserWarning, stacklevel=stacklevel)

    def state_dict(self) -> State:
        """How far the current epoch has come, to be saved beside the model: plain values and tensors of bytes."""
        progress = self._progress
        if self._resume is not None:
            return self._resume
        if progress is None:  # before the first epoch
            progress = Progress(self, -1, None, False)
            progress.running = False
        return progress.state_dict(self)

    def load_state_dict(self, state_dict: State) -> None:
        """Let the next iteration continue where the loader that gave `state_dict` was."""
        check_state(self, state_dict)
        if isinstance(self._iterator, _MultiProcessingDataLoaderIter):
            self._iterator._shutdown_workers()
            self._iterator = None
        self._resume = state_dict
        if not state_dict["running"]:
            finish_epoch(self, state_dict)


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, worker_method: str
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing. "
            f"It is {num_workers}"
        )
    if num_workers > 0:
        refuse_in_browser("Worker processes and threads", "load in the program itself, with num_workers=0")
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, but got timeout={timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError(f"prefetch_factor option should be non-negative, but got prefetch_factor={prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if worker_method not in (MULTIPROCESSING, THREAD):
        raise ValueError(f"worker_method should be {MULTIPROCESSING!r} or {THREAD!r}, but got {worker_method!r}")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_batches(
    batch_size: int | None, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> tuple[int | None, bool]:
    """The batch size and `drop_last` that hold, given what else was asked for."""
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        return None, False
    if batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    return batch_size, drop_last


def _taken_state(loader: DataLoader[Any]) -> State | None:
    """The state that the next epoch continues, once. Libraries hand in objects that have PyTorch's attributes alone."""
    state: State | None = getattr(loader, "_resume", None)
    loader._resume = None
    return state


class _BaseDataLoaderIter:
    """One pass over a loader. It does not refer to the loader, so that it ends as soon as nobody holds it."""

    _base_seed: int = -1
    """The seed of the workers; without any it is drawn all the same, as soon as the sampler has begun."""
    _shared_seed: int | None = None
    """The seed of the orders in which a pipe shuffles."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._persistent_workers = loader.persistent_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._pin_memory = pins(loader.pin_memory)
        self._make_fetcher = functools.partial(
            _DatasetKind.create_fetcher,
            self._dataset_kind,
            auto_collation=loader._auto_collation,
            collate_fn=loader.collate_fn,
            drop_last=loader.drop_last,
        )

    def _begin(self, loader: DataLoader[Any], state: State | None) -> None:
        """Start an epoch, or continue the saved one."""
        resumed = state if state is not None and state["running"] else None
        follows = self._num_workers == 0 if resumed is None else resumed.get("seed_follows", False)
        self._progress = loader._progress = Progress(loader, self._base_seed, self._shared_seed, follows)
        self._sampler_iter = iter(self._index_sampler)
        if follows:
            drawn = random_seed(loader.generator)
            if resumed is None:
                self._base_seed = self._progress.base_seed = drawn
        self._drawn = 0
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if resumed is not None:
            self._progress.resume(resumed)
            self._num_yielded = sum(resumed["batches"])

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Start another epoch with the workers of the last one."""
        raise NotImplementedError(f"{type(self).__name__} serves one epoch")

    def _has_ended(self) -> bool:
        """Whether there are no workers for another epoch."""
        return True

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _next_task(self) -> tuple[int, Any]:
        """The number and the indices of the next batch that has not been delivered."""
        while True:
            index = next(self._sampler_iter)
            task = self._drawn
            self._drawn += 1
            if self._dataset_kind == _DatasetKind.Iterable or not self._progress.is_done(task):
                return task, index

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        try:
            data = self._next_data()
        except StopIteration:
            self._progress.running = False
            raise
        except Exception as error:
            leave_out_library(error)
            raise
        self._num_yielded += 1
        reported = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and reported is not None and self._num_yielded > reported:
            message = (
                f"Length of IterableDataset {self._dataset} was reported to be {reported}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                message += "Each worker iterates over its own copy: let get_worker_info() decide which share it takes."
            warnings.warn(message, UserWarning, stacklevel=2)
        return pin_memory(data) if self._pin_memory else data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} cannot be pickled: save the loader's state_dict() instead, "
            "which says how far the epoch has come"
        )


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads each batch when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError(
                f"a DataLoader without workers requires timeout == 0, but it is {self._timeout}: set num_workers too"
            )
        state = _taken_state(loader)
        if state is not None and state["running"]:
            self._shared_seed, self._base_seed = state.get("shared_seed"), state["base_seed"]
        else:
            self._shared_seed = pipes.epoch_seed(loader)
        if self._shared_seed is not None:
            pipes.take_share(self._dataset, 0, 0)
        with replayed(loader, state):
            self._begin(loader, state)
            pipes.begin_epoch(self._dataset, self._shared_seed)
            self._dataset_fetcher: _BaseDatasetFetcher = self._make_fetcher(self._dataset)
            for index in itertools.islice(self._sampler_iter, self._progress.tasks):
                self._dataset_fetcher.skip(index)
                self._drawn += 1

    def _next_data(self) -> Any:
        task, index = self._next_task()
        self._progress.finish(task)  # an error ends this batch as well: the next call goes on after it
        data = self._dataset_fetcher.fetch(index)
        self._progress.batches[0] += 1
        return data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads batches ahead, in worker processes or threads.

    Tasks have numbers and go to the workers in turn; each is answered once. In the order of their numbers, or with
    `in_order=False` in that of their arrival, the answers become batches, and each makes room for another task.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._in_order = loader.in_order
        self._ahead = max(1, (loader.prefetch_factor or 0) * loader.num_workers)
        state = _taken_state(loader)
        keeps_seed = state is not None and (state["running"] or loader.persistent_workers) and state["base_seed"] >= 0
        resumes = state is not None and state["running"]
        self._shared_seed = state.get("shared_seed") if state is not None and resumes else pipes.epoch_seed(loader)
        if not resumes:
            iter(self._index_sampler)  # PyTorch begins twice, which a sampler that draws at once tells
        self._base_seed = state["base_seed"] if state is not None and keeps_seed else random_seed(loader.generator)
        pipes.epoch_seed(loader)  # one more draw that nobody reads: what the program draws next is then PyTorch's
        self._outstanding: dict[int, int] = {}
        self._arrived: dict[int, Result] = {}
        self._first_task = 0
        with replayed(loader, state):
            self._pool = self._make_pool(loader, state if keeps_seed else None)
            self._finalizer = weakref.finalize(self, self._pool.close)
            self._begin(loader, state)
            if state is not None and keeps_seed and state["num_workers"] == loader.num_workers:
                self._progress.random_states = list(state["random_states"])

    @property
    def _workers(self) -> list[Any]:
        return list(self._pool.processes)

    def _make_pool(self, loader: DataLoader[Any], state: State | None) -> Any:
        from ._utils.processes import ProcessPool
        from ._utils.threads import ThreadPool

        setups = []
        same = state is not None and state["num_workers"] == loader.num_workers
        for worker in range(loader.num_workers):
            skip: list[Any] = []
            random_state = None
            if state is not None and same:
                random_state = state["random_states"][worker]
                if state["running"] and loader._is_iterable():
                    index = None if loader.batch_size is None else [None] * loader.batch_size
                    skip = [index] * state["batches"][worker]
            own = worker, loader.num_workers, self._base_seed
            parts = loader.dataset, self._make_fetcher, loader.worker_init_fn
            setups.append(WorkerSetup(*own, *parts, skip, random_state, self._shared_seed))
        if getattr(loader, "worker_method", MULTIPROCESSING) == THREAD:
            return ThreadPool(setups)
        return ProcessPool(loader.multiprocessing_context or multiprocessing.get_context(), setups)

    def _begin(self, loader: DataLoader[Any], state: State | None) -> None:
        super()._begin(loader, state)
        self._active = [True] * self._num_workers
        self._turn = self._progress.next_worker
        self._load = [0] * self._num_workers
        for _ in range(self._ahead):
            self._dispatch()

    def _reset(self, loader: DataLoader[Any]) -> None:
        for result in self._arrived.values():
            self._pool.discard(result)
        self._arrived.clear()
        self._outstanding.clear()
        self._first_task += self._drawn
        self._shared_seed = pipes.epoch_seed(loader)
        self._pool.begin_epoch(self._shared_seed)
        random_states = self._progress.random_states
        self._begin(loader, None)
        self._progress.random_states = random_states

    def _has_ended(self) -> bool:
        return bool(self._pool.closed)

    def _dispatch(self) -> None:
        """Give out one more task, if there is one and a worker that still takes tasks."""
        turns = [(self._turn + step) % self._num_workers for step in range(self._num_workers)]
        able = [worker for worker in turns if self._active[worker]]
        try:
            task, index = self._next_task()
        except StopIteration:
            return
        if able:
            worker = able[0] if self._in_order else min(able, key=self._load.__getitem__)
            self._turn = (worker + 1) % self._num_workers
            self._load[worker] += 1
            self._outstanding[self._first_task + task] = worker
            self._pool.submit(worker, self._first_task + task, index)

    def _receive(self) -> None:
        """Wait for a result."""
        try:
            result = self._pool.receive(self._timeout)
        except BaseException as error:
            if not isinstance(error, Exception):
                # Interrupted, perhaps in the middle of a message, and the workers have got the same signal.
                self._finalizer()
            raise
        if result is None:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        if result.task in self._outstanding:
            self._arrived[result.task] = result
        else:  # of an epoch that was left early
            self._pool.discard(result)

    def _next_result(self) -> Result:
        """The next answer in order, or the next to come."""
        if self._in_order:
            wanted = next(iter(self._outstanding))
            if wanted in self._arrived:
                self._pool.check()
            while wanted not in self._arrived:
                self._receive()
        else:
            while not self._arrived:
                self._receive()
            wanted = next(iter(self._arrived))
        self._load[self._outstanding.pop(wanted)] -= 1
        return self._arrived.pop(wanted)

    def _next_data(self) -> Any:
        while self._outstanding:
            result = self._next_result()
            task = result.task - self._first_task
            if result.kind == END:
                self._active[result.worker] = False
            self._dispatch()
            if result.kind == DATA:
                content = self._pool.content(result)
                self._progress.deliver(task, result.worker, result.random_state)
                return content
            self._progress.finish(task)
            if result.kind == FAILURE:
                self._pool.content(result).reraise()
        if not self._persistent_workers:
            self._finalizer()
        raise StopIteration

    def _shutdown_workers(self) -> None:
        """End the workers now."""
        self._finalizer()
