"""Epochs that are continued: the same batches, random numbers included, as if nothing had happened."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, WeightedRandomSampler
from flambeau.utils.data._utils.randomness import process_states, restore_process
from tests.utils.data.datasets import RandomRows, RandomStream, Stream, Trouble

SETTINGS: dict[str, dict[str, Any]] = {
    "main process": {},
    "processes": {"num_workers": 2},
    "threads": {"num_workers": 2, "worker_method": "thread"},
    "persistent": {"num_workers": 2, "persistent_workers": True},
}
SETTING = pytest.mark.parametrize("setting", SETTINGS)


def seed_all(seed: int) -> None:
    flambeau.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


class Shuffled(Sampler[int]):
    """A sampler with Python's random numbers."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Any:
        order = list(range(self.size))
        random.shuffle(order)
        return iter(order)

    def __len__(self) -> int:
        return self.size


class Stateful(Shuffled):
    """A sampler that looks after its state itself."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.passes = 0

    def __iter__(self) -> Any:
        self.passes += 1
        return iter([(index * 7 + self.passes) % self.size for index in range(self.size)])

    def state_dict(self) -> dict[str, int]:
        return {"passes": self.passes}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.passes = state["passes"]


class AtOnce(Sampler[list[int]]):
    """A sampler of batches that draws before anybody asks for one."""

    def __init__(self) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(flambeau.randperm(12).reshape(6, 2).tolist())

    def __len__(self) -> int:
        return 6


KINDS: dict[str, Any] = {
    "sequential": lambda: {"batch_size": 2},
    "shuffle": lambda: {"batch_size": 2, "shuffle": True},
    "generator": lambda: {"batch_size": 2, "shuffle": True, "generator": flambeau.Generator().manual_seed(9)},
    "replacement": lambda: {
        "batch_size": 4,
        "sampler": RandomSampler(range(12), True, 40, flambeau.Generator().manual_seed(2)),
    },
    "weighted": lambda: {"batch_size": 3, "sampler": WeightedRandomSampler([1.0] * 12, 17)},
    "batches": lambda: {"batch_sampler": BatchSampler(Shuffled(12), 5, False)},
    "batches drawn at once": lambda: {"batch_sampler": AtOnce()},
    "own state": lambda: {"batch_size": 2, "sampler": Stateful(12)},
    "no batches": lambda: {"batch_size": None, "shuffle": True},
}


def fit(loader: Any, epochs: int, log: list[Any], stop: int | None = None) -> Any:
    """Go over the loader and log what comes, with a random number of the main process; at `stop` say how to go on."""
    while epochs:
        for batch in loader:
            log.append(
                ([each.tolist() if hasattr(each, "tolist") else each for each in batch], flambeau.rand(1).item())
            )
            if stop is not None and len(log) == stop:
                return loader.state_dict(), process_states(), epochs
        epochs -= 1
    return loader.state_dict(), process_states(), epochs


def saved_and_loaded(state: Any) -> Any:
    file = io.BytesIO()
    pickle.dump(state, file)
    file.seek(0)
    return pickle.load(file)


CASES = [(kind, "main process") for kind in KINDS]
CASES += [(kind, setting) for kind in ("shuffle", "replacement") for setting in SETTINGS if setting != "main process"]
SAMPLED = [kind for kind in KINDS if (kind, "processes") not in CASES]


@pytest.mark.parametrize(("kind", "setting"), CASES)
def test_interrupted_and_continued(kind: str, setting: str) -> None:
    continue_after(kind, setting, lambda epoch: (2, epoch, epoch + 1))


@pytest.mark.parametrize("kind", SAMPLED)
def test_workers_leave_the_other_samplers_alone(kind: str) -> None:
    """In the middle of the second epoch, when both have a past; to start workers takes the time."""
    continue_after(kind, "processes", lambda epoch: (epoch + 1,))


def continue_after(kind: str, setting: str, stops: Callable[[int], tuple[int, ...]]) -> None:
    """Interrupt two epochs after some of their batches, and continue them; `stops` gets the batches of an epoch."""

    def make() -> Any:
        return DataLoader(RandomRows(12, 4), **KINDS[kind](), **SETTINGS[setting])

    seed_all(5)
    whole: list[Any] = []
    fit(make(), 2, whole)
    for stop in stops(len(whole) // 2):
        seed_all(5)
        log: list[Any] = []
        state, states, epochs = saved_and_loaded(fit(make(), 2, log, stop))
        seed_all(1234)
        loader = make()
        flambeau.rand(3)
        loader.load_state_dict(state)
        restore_process(states)
        fit(loader, epochs, log)
        assert log == whole, f"stopped after {stop} of {len(whole)} batches"


@pytest.mark.parametrize("setting", ["main process", "processes", "persistent"])  # threads share what this draws from
def test_streams_are_continued(setting: str) -> None:
    def make() -> Any:
        return DataLoader(RandomStream(9, 4), 2, **SETTINGS[setting])

    seed_all(5)
    whole: list[Any] = []
    fit(make(), 2, whole)
    for stop in (1, 3, len(whole) // 2):
        seed_all(5)
        log: list[Any] = []
        state, states, epochs = saved_and_loaded(fit(make(), 2, log, stop))
        seed_all(77)
        loader = make()
        loader.load_state_dict(state)
        restore_process(states)
        fit(loader, epochs, log)
        assert log == whole, f"stopped after {stop} of {len(whole)} batches"


@SETTING
def test_a_state_between_epochs(setting: str) -> None:
    def make() -> Any:
        generator = flambeau.Generator().manual_seed(9)
        return DataLoader(RandomRows(6, 4), 2, True, generator=generator, **SETTINGS[setting])

    seed_all(5)
    whole: list[Any] = []
    fit(make(), 3, whole)
    seed_all(5)
    log: list[Any] = []
    state, states, _ = saved_and_loaded(fit(make(), 1, log))
    loader = make()
    loader.load_state_dict(state)
    restore_process(states)
    fit(loader, 2, log)
    assert log == whole


def test_a_state_before_the_first_epoch() -> None:
    generator = flambeau.Generator().manual_seed(9)
    first = DataLoader(range(8), shuffle=True, generator=generator)
    state = first.state_dict()
    second = DataLoader(range(8), shuffle=True, generator=flambeau.Generator())
    second.load_state_dict(state)
    assert second.state_dict() is state
    assert list(second) == list(first)


def test_continued_twice_and_with_other_workers() -> None:
    def make(workers: int) -> Any:
        generator = flambeau.Generator().manual_seed(9)
        return DataLoader(range(20), 2, True, generator=generator, num_workers=workers)

    def indices(loader: Any, count: int) -> list[int]:
        iterator = iter(loader)
        return [index for _ in range(count) for index in next(iterator).tolist()]

    whole = indices(make(0), 10)
    loader = make(2)
    got = indices(loader, 3)
    for workers, count in ((0, 2), (1, 2), (2, 3)):
        state = loader.state_dict()
        loader = make(workers)
        loader.load_state_dict(state)
        got += indices(loader, count)
    assert got == whole


def test_after_a_break_the_state_is_still_that_of_the_last_batch() -> None:
    loader = DataLoader(range(10), num_workers=2)
    for batch in loader:
        if batch == 3:
            break
    again = DataLoader(range(10))
    again.load_state_dict(loader.state_dict())
    assert [batch.item() for batch in again] == [4, 5, 6, 7, 8, 9]
    assert [batch.item() for batch in again] == list(range(10))


def test_out_of_order_nothing_is_lost_or_repeated() -> None:
    loader = DataLoader(range(30), num_workers=2, in_order=False)
    iterator = iter(loader)
    seen = [next(iterator).item() for _ in range(11)]
    again = DataLoader(range(30), num_workers=2, in_order=False)
    again.load_state_dict(loader.state_dict())
    assert sorted(seen + [batch.item() for batch in again]) == list(range(30))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_failed_is_not_tried_again(workers: int) -> None:
    loader = DataLoader(Trouble("value_error"), None, num_workers=workers)
    seen = []
    with pytest.raises(ValueError, match="no such row"):
        seen += list(loader)
    again = DataLoader(Trouble("value_error"), None, num_workers=workers)
    again.load_state_dict(loader.state_dict())
    assert list(again) == [6, 7]


def test_states_that_do_not_fit() -> None:
    loader = DataLoader(Stream(4, 4), num_workers=2)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="num_workers=2, but this DataLoader has num_workers=1"):
        DataLoader(Stream(4, 4), num_workers=1).load_state_dict(state)
    with pytest.raises(ValueError, match="of version 1, but got version None"):
        loader.load_state_dict({})
    with pytest.raises(ValueError, match="1 generators beside the default one, but this DataLoader has 0"):
        DataLoader(range(3)).load_state_dict(DataLoader(range(3), generator=flambeau.Generator()).state_dict())
