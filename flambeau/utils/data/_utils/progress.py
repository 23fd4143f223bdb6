"""How far an epoch has come: what is saved of a loader, and how it is continued."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...._core.generator import Generator, default_generator
from .randomness import process_states, restore_process

VERSION = 1


def _samplers(loader: Any) -> tuple[Any, Any, Any]:
    """A loader's batch sampler, its sampler and its batch sampler's sampler; None for those that it lacks."""
    batches = getattr(loader, "batch_sampler", None)
    return batches, getattr(loader, "sampler", None), getattr(batches, "sampler", None)


def generators_of(loader: Any) -> list[Generator]:
    """The generators beside the default one that decide the order of samples."""
    found: list[Generator] = []
    batches, sampler, inner = _samplers(loader)
    for holder in (loader, sampler, batches, inner):
        generator = getattr(holder, "generator", None)
        if isinstance(generator, Generator) and not any(generator is each for each in (default_generator, *found)):
            found.append(generator)
    return found


def _stateful(loader: Any) -> Any:
    """The loader's sampler if it can say and take over its state itself."""
    for sampler in _samplers(loader):
        if hasattr(sampler, "state_dict") and hasattr(sampler, "load_state_dict"):
            return sampler
    return None


class Progress:
    """The position in one epoch, and what is needed to get there again.

    An epoch is repeated from its beginning, without loading anything, up to the first batch that was not delivered:
    from the states that the generators and the sampler had then. Batches that workers have prepared but that were not
    delivered do not count.
    """

    def __init__(self, loader: Any, base_seed: int, shared_seed: int | None, seed_follows: bool) -> None:
        self.base_seed = base_seed
        self.shared_seed = shared_seed
        self.seed_follows = seed_follows
        """Whether the seed of the workers was drawn when the sampler had begun, before it was asked for anything."""
        self.running = True
        self.tasks = 0
        """How many tasks, from the first on, are done."""
        self.done_later: set[int] = set()
        """Tasks that are done while an earlier one is not."""
        self.batches = [0] * max(1, loader.num_workers)
        """How many batches each worker has delivered."""
        self.random_states: list[Any] = [None] * loader.num_workers
        """Where the random numbers of each worker stood after the last of them."""
        self.next_worker = 0
        self.process_states = process_states()
        self.generators = [each.get_state() for each in generators_of(loader)]
        sampler = _stateful(loader)
        self.sampler = None if sampler is None else sampler.state_dict()

    def resume(self, state: dict[str, Any]) -> None:
        """Continue an epoch from a saved state."""
        self.tasks = state["tasks"]
        self.done_later = set(state["done_later"])
        if state["num_workers"] == len(self.random_states):
            self.batches = list(state["batches"])
            self.next_worker = state["next_worker"]
            self.random_states = list(state["random_states"])

    def is_done(self, task: int) -> bool:
        """Whether the batch of a task has been delivered."""
        return task < self.tasks or task in self.done_later

    def deliver(self, task: int, worker: int, random_state: Any) -> None:
        """The user has got the batch of a task."""
        self.finish(task)
        self.batches[worker] += 1
        self.next_worker = (worker + 1) % len(self.batches)
        if random_state is not None:
            self.random_states[worker] = random_state

    def finish(self, task: int) -> None:
        """Nothing more will come of a task."""
        self.done_later.add(task)
        while self.tasks in self.done_later:
            self.done_later.remove(self.tasks)
            self.tasks += 1

    def state_dict(self, loader: Any) -> dict[str, Any]:
        """Plain numbers, lists, bytes and tensors of bytes."""
        sampler = _stateful(loader)
        return {
            "version": VERSION,
            "running": self.running,
            "base_seed": self.base_seed,
            "shared_seed": self.shared_seed,
            "seed_follows": self.seed_follows,
            "num_workers": loader.num_workers,
            "tasks": self.tasks,
            "done_later": sorted(self.done_later),
            "batches": list(self.batches),
            "next_worker": self.next_worker,
            "random_states": list(self.random_states),
            "process_at_start": self.process_states,
            "generators_at_start": list(self.generators),
            "generators_now": [each.get_state() for each in generators_of(loader)],
            "sampler_at_start": self.sampler,
            "sampler_now": None if sampler is None else sampler.state_dict(),
        }


def check_state(loader: Any, state: dict[str, Any]) -> None:
    """Refuse a state that this loader cannot continue from."""
    version = state.get("version") if isinstance(state, dict) else None
    if version != VERSION:
        raise ValueError(f"expected the state_dict() of a DataLoader of version {VERSION}, but got version {version}")
    saved, expected = len(state["generators_now"]), len(generators_of(loader))
    if saved != expected:
        raise ValueError(
            f"the state has {saved} generators beside the default one, but this DataLoader has {expected}: "
            "make it with the same generator= and sampler= as the one that was saved"
        )
    if state["num_workers"] != loader.num_workers and loader._is_iterable():
        raise ValueError(
            f"the state was saved with num_workers={state['num_workers']}, but this DataLoader has "
            f"num_workers={loader.num_workers}: the workers of an IterableDataset each have a share of their own"
        )


def settle(loader: Any, state: dict[str, Any]) -> None:
    """Put the loader's own generators where they were when the state was saved."""
    for generator, saved in zip(generators_of(loader), state["generators_now"], strict=True):
        generator.set_state(saved)


@contextlib.contextmanager
def replayed(loader: Any, state: dict[str, Any] | None) -> Iterator[None]:
    """Generators and sampler stand where they did when the saved epoch began; afterwards, where they were at last.

    The generators of the process, which belong to the whole program, are left as they were found.
    """
    if state is None or not state["running"]:
        yield
        return
    found = process_states()
    restore_process(state["process_at_start"])
    for generator, saved in zip(generators_of(loader), state["generators_at_start"], strict=True):
        generator.set_state(saved)
    sampler = _stateful(loader)
    if sampler is not None:
        sampler.load_state_dict(state["sampler_at_start"])
    try:
        yield
    finally:
        restore_process(found)
        settle(loader, state)


def finish_epoch(loader: Any, state: dict[str, Any]) -> None:
    """Take over a state that was saved between two epochs."""
    settle(loader, state)
    sampler = _stateful(loader)
    if sampler is not None:
        sampler.load_state_dict(state["sampler_now"])
