"""`DataLoader` beside PyTorch's: orders, seeds, options, warnings and errors, with and without workers."""

from __future__ import annotations

import itertools
import multiprocessing
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.utils.data import DataLoader
from tests.support.differential import differential, outcome, warned
from tests.utils.data.datasets import RandomRows, Rows, identity
from tests.utils.data.test_dataset import data_of, stream_of

WORKERS = pytest.mark.parametrize("workers", [0, 2])


def listed(batch: Any) -> Any:
    return batch.tolist() if hasattr(batch, "tolist") else batch


def batches(loader: Any) -> list[Any]:
    return [listed(batch) for batch in loader]


LOADERS: dict[str, Callable[..., dict[str, Any]]] = {
    "plain": lambda T, D: {},
    "batches": lambda T, D: {"batch_size": 3},
    "whole batches": lambda T, D: {"batch_size": 3, "drop_last": True},
    "no batches": lambda T, D: {"batch_size": None},
    "shuffle": lambda T, D: {"batch_size": 3, "shuffle": True},
    "shuffle without batches": lambda T, D: {"batch_size": None, "shuffle": True},
    "generator": lambda T, D: {"batch_size": 5, "shuffle": True, "generator": T.Generator().manual_seed(4)},
    "sampler": lambda T, D: {"batch_size": 2, "sampler": D.WeightedRandomSampler([1.0] * 10, 7)},
    "list": lambda T, D: {"batch_size": 2, "sampler": [3, 1, 4, 1]},
    "replacement": lambda T, D: {"batch_size": 4, "sampler": D.RandomSampler(range(10), True, 40)},
    "batch_sampler": lambda T, D: {"batch_sampler": D.BatchSampler(D.RandomSampler(range(10)), 3, True)},
    "lists": lambda T, D: {"batch_sampler": [[1, 2], [5], [9, 0, 3]]},
    "collate_fn": lambda T, D: {"batch_size": 4, "collate_fn": identity, "shuffle": True},
    "sampler that draws at once": lambda T, D: {"batch_size": 3, "sampler": drawing_at_once(T, D, 1)},
    "the same without batches": lambda T, D: {"batch_size": None, "sampler": drawing_at_once(T, D, 1)},
    "batches drawn at once": lambda T, D: {"batch_sampler": drawing_at_once(T, D, 2)},
}


def drawing_at_once(T: Any, D: Any, dimensions: int) -> Any:
    """A sampler whose `__iter__` draws before anybody asks for an index."""

    class AtOnce(D.Sampler):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            pass

        def __iter__(self) -> Any:
            order = T.randperm(10)
            return iter((order if dimensions == 1 else order.reshape(5, 2)).tolist())

        def __len__(self) -> int:
            return 10 if dimensions == 1 else 5

    return AtOnce()


@pytest.mark.parametrize("name", LOADERS)
@WORKERS
@differential
def test_orders(T: Any, name: str, workers: int) -> Any:
    options = LOADERS[name](T, data_of(T))
    loader = data_of(T).DataLoader(range(10), num_workers=workers, **options)
    generator = options.get("generator")
    drawn = None if generator is None else T.rand(1, generator=generator)
    return len(loader), batches(loader), T.rand(1), batches(loader), T.rand(1), drawn


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"batch_size": None}, {"drop_last": True}], ids=str)
@differential
def test_iterable(T: Any, workers: int, options: dict[str, Any]) -> Any:
    D = data_of(T)

    class Stream(D.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            info = D.get_worker_info()
            worker = 0 if info is None else info.id
            return iter(range(100 * worker, 100 * worker + (5, 9)[worker]))

    loader = D.DataLoader(Stream(), **{"batch_size": 2, "num_workers": workers, **options})
    return batches(loader), batches(loader), T.rand(1)


@pytest.mark.parametrize("persistent", [False, True])
@differential(tolerance=0.0)
def test_worker_seeds(T: Any, persistent: bool) -> Any:
    D = data_of(T)

    class Noise(D.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            info = D.get_worker_info()
            known = info.id, info.num_workers, info.seed, info.rng, info.worker_method
            return index, known, T.initial_seed(), random.random(), np.random.rand(), T.rand(2), T.get_num_threads()

    loader = D.DataLoader(Noise(), None, num_workers=2, persistent_workers=persistent)
    return list(loader), list(loader), T.rand(1), D.get_worker_info()


@WORKERS
@differential
def test_getitems(T: Any, workers: int) -> Any:
    D = data_of(T)

    class Together(D.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 5

        def __getitems__(self, indices: list[int]) -> list[int]:
            return [10 * index for index in indices]

        def __getitem__(self, index: int) -> int:
            return index

    return batches(D.DataLoader(Together(), 2, num_workers=workers)), batches(D.DataLoader(Together(), None))


ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "batch size 0": ({"batch_size": 0}, "batch_size=0"),
    "batch size text": ({"batch_size": "3"}, "batch_size=3"),
    "batch size bool": ({"batch_size": True}, "batch_size=True"),
    "shuffle and sampler": ({"shuffle": True, "sampler": [1]}, "mutually exclusive with shuffle"),
    "batch_sampler and size": ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
    "batch_sampler and shuffle": ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler option is mutually"),
    "batch_sampler and drop": ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler option is mutually"),
    "drop without batches": ({"batch_size": None, "drop_last": True}, "disables auto-batching"),
    "workers": ({"num_workers": -1}, "num_workers option should be non-negative"),
    "prefetch without workers": ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
    "prefetch": ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-negative"),
    "persistent": ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
    "timeout": ({"timeout": -1}, "timeout option should be non-negative"),
    "context": ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
    "start method": ({"num_workers": 1, "multiprocessing_context": "x"}, "should specify a valid start method"),
    "context type": ({"num_workers": 1, "multiprocessing_context": 3}, "should be a valid context object"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
@differential
def test_arguments(T: Any, case: str) -> Any:
    options, phrase = ARGUMENTS[case]
    return outcome(lambda: data_of(T).DataLoader(range(6), **options), phrase)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}], ids=str)
@differential
def test_iterable_arguments(T: Any, options: dict[str, Any]) -> Any:
    action = lambda: data_of(T).DataLoader(stream_of(T, 3), **options)  # noqa: E731
    return outcome(action, "DataLoader with IterableDataset: expected unspecified")


@differential
def test_attributes(T: Any) -> Any:
    D = data_of(T)
    loader, custom = D.DataLoader(range(6)), D.DataLoader(range(6), batch_sampler=[[1]])
    fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    loader.num_workers = 2
    return (
        [outcome(lambda name=name: setattr(loader, name, 3), "should not be set after") for name in fixed],
        [getattr(loader, name) for name in ("batch_size", "drop_last", "timeout", "pin_memory", "prefetch_factor")],
        [custom.batch_size, custom.drop_last, len(custom)],
        [type(each).__name__ for each in (loader.sampler, loader.batch_sampler, D.DataLoader(range(3), None).sampler)],
        loader.collate_fn.__name__,
        D.DataLoader(range(6), None).collate_fn.__name__,
        D.DataLoader(range(6), num_workers=1).prefetch_factor,
        len(iter(D.DataLoader(range(6), 4))),
        outcome(lambda: iter(custom).__getstate__()),
    )


@differential
def test_lengths(T: Any) -> Any:
    D = data_of(T)
    stream = stream_of(T, 5)
    known = [D.DataLoader(stream, 2), D.DataLoader(stream, 2, drop_last=True), D.DataLoader(stream, None)]
    unknown = D.DataLoader(stream_of(T, 5, known=False))
    return [len(each) for each in known], outcome(lambda: len(unknown), "has no len()"), batches(D.DataLoader([]))


@WORKERS
@differential
def test_warnings(T: Any, workers: int) -> Any:
    D = data_of(T)

    class Wrong(type(stream_of(T, 3))):  # type: ignore[misc]
        def __len__(self) -> int:
            return 2

    loader = D.DataLoader(Wrong(), None, num_workers=workers)
    size = len(loader)
    pinned = D.DataLoader(range(2), num_workers=workers, pin_memory=True)
    return (
        size,
        warned(lambda: batches(loader), "was reported to be 2(when accessing len(dataloader)), but 3 samples"),
        warned(lambda: batches(pinned), "no accelerator is found, then device pinned memory won't be used"),
    )


def test_a_warning_of_too_many_workers() -> None:
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        DataLoader(range(3), num_workers=1000)


@WORKERS
@differential
def test_iterators_end_once(T: Any, workers: int) -> Any:
    iterator = iter(data_of(T).DataLoader(range(2), num_workers=workers))
    return iterator is iter(iterator), [listed(next(iterator, "end")) for _ in range(4)]


@differential
def test_persistent_iterators(T: Any) -> Any:
    loader = data_of(T).DataLoader(range(6), num_workers=2, persistent_workers=True, shuffle=True)
    first = iter(loader)
    seen = [listed(next(first)) for _ in range(2)]
    pids = [worker.pid for worker in first._workers]
    second = iter(loader)  # an epoch that is left early, then whole ones
    whole = [batches(second), batches(loader)]
    return seen, whole, second is first, [worker.pid for worker in second._workers] == pids, T.rand(1)


def test_out_of_order_all_arrive() -> None:
    loader = DataLoader(range(20), 2, num_workers=2, in_order=False)
    assert sorted(itertools.chain(*batches(loader))) == list(range(20))
    assert sorted(itertools.chain(*batches(loader))) == list(range(20))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method: str) -> None:
    flambeau.manual_seed(1)
    expected = list(DataLoader(RandomRows(6), None, num_workers=2))
    flambeau.manual_seed(1)
    context = multiprocessing.get_context(method) if method == "spawn" else method
    actual = list(DataLoader(RandomRows(6), None, num_workers=2, multiprocessing_context=context))
    assert actual == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_large_datasets_reach_workers(method: str) -> None:
    rows = Rows(8)
    got = list(DataLoader(rows, 4, num_workers=1, multiprocessing_context=method))
    assert flambeau.equal(flambeau.cat([batch for batch, _ in got]), rows.rows)


@differential
def test_pickled_loaders_and_generics(T: Any) -> Any:
    import copy

    D = data_of(T)
    loader = copy.deepcopy(D.DataLoader(range(4), 2))
    return batches(loader), str(D.DataLoader[int]).rsplit(".", maxsplit=1)[-1]


def test_no_prefetch_still_delivers() -> None:
    assert batches(DataLoader(range(4), num_workers=2, prefetch_factor=0)) == [[0], [1], [2], [3]]


def test_the_package_loads_on_first_use() -> None:
    import subprocess
    import sys

    program = (
        "import sys, flambeau, flambeau.utils\n"
        "assert 'flambeau.utils.data' not in sys.modules and 'multiprocessing' not in sys.modules\n"
        "flambeau.utils.data.DataLoader"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
