"""The random numbers of workers: their seeds, and their states for resuming."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...._core.generator import Generator, default_generator
from ...._core.process.locks import also_at_forks

if TYPE_CHECKING:
    from numpy.random import Generator as NumPyGenerator


def _numpy_lock() -> Any:
    """The lock of NumPy's own generator, which a worker is about to seed; NumPy loads it when it is first used."""
    numbers: Any = sys.modules.get("numpy.random")
    return None if numbers is None else numbers.get_bit_generator().lock


also_at_forks(_numpy_lock)


def entropy(base_seed: int, worker: int) -> Any:
    """What seeds NumPy in a worker."""
    return np.random.SeedSequence([worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0])


def seed_process(base_seed: int, worker: int) -> None:
    """Seed the generators of Python, NumPy and Flambeau in a worker process, as PyTorch seeds its workers'."""
    seed = base_seed + worker
    random.seed(seed)
    default_generator.manual_seed(seed)
    np.random.seed(entropy(base_seed, worker).generate_state(4))  # noqa: NPY002


def process_states() -> tuple[Any, ...]:
    """Where the generators of Python, NumPy and Flambeau stand in this process: plain tuples, numbers and bytes."""
    state: Any = np.random.get_state()  # noqa: NPY002
    name, key, *rest = state
    return random.getstate(), (name, key.tobytes(), *rest), default_generator.state_bytes().tobytes()


def restore_process(states: tuple[Any, ...]) -> None:
    """Continue from states that `process_states` gave."""
    python, (name, key, *rest), own = states
    random.setstate(_as_tuple(python))
    np.random.set_state((name, np.frombuffer(key, np.uint32), *rest))  # noqa: NPY002
    default_generator.set_state_bytes(np.frombuffer(own, np.uint8))


class ProcessRandomness:
    """The three generators that a worker process has for itself."""

    def __init__(self) -> None:
        self._last = process_states()

    def changed(self) -> tuple[Any, ...] | None:
        """The states, if they are other than when this was last asked."""
        states = process_states()
        if states == self._last:
            return None
        self._last = states
        return states

    def restore(self, states: tuple[Any, ...]) -> None:
        """Continue from states that `changed` gave."""
        restore_process(states)
        self._last = process_states()


class _RNG(NamedTuple):
    """The generators of one thread worker, for the code of its dataset."""

    random_generator: random.Random
    torch_generator: Generator
    numpy_generator: NumPyGenerator


class ThreadRandomness:
    """The generators of a worker thread, which shares those of the process with all other threads."""

    def __init__(self, base_seed: int, worker: int) -> None:
        seed = base_seed + worker
        numbers = np.random.default_rng(entropy(base_seed, worker))
        self.rng = _RNG(random.Random(seed), Generator().manual_seed(seed), numbers)
        self._last = self._states()

    def _states(self) -> tuple[Any, ...]:
        python, own, numbers = self.rng
        return python.getstate(), numbers.bit_generator.state, own.state_bytes().tobytes()

    def changed(self) -> tuple[Any, ...] | None:
        """The states, if they are other than when this was last asked."""
        states = self._states()
        if states == self._last:
            return None
        self._last = states
        return states

    def restore(self, states: tuple[Any, ...]) -> None:
        """Continue from states that `changed` gave."""
        python, numbers, own = states
        self.rng.random_generator.setstate(_as_tuple(python))
        self.rng.numpy_generator.bit_generator.state = numbers
        self.rng.torch_generator.set_state_bytes(np.frombuffer(own, np.uint8))
        self._last = self._states()


def _as_tuple(state: Any) -> Any:
    """The state of Python's generator; a file format may have made lists of its tuples."""
    version, words, gauss = state
    return version, tuple(words), gauss
