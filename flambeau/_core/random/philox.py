"""The generator of CUDA devices: Philox 4x32-10, counted rather than stepped.

A number depends on the seed, on the thread that draws it and on how many draws there were before: the state is a seed
and an offset. The kernels that draw are the device's; here is the bookkeeping, the same as PyTorch's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays.lazy_signs import content
from ..device import device as Device
from ..generator import DEFAULT_SEED, Generator, OneByOne
from ..process.locks import new_lock, new_reentrant_lock
from ..tensor import Tensor

_STATE_SIZE = 16
_STEP = 0x9E3779B97F4A7C15
"""Odd and without a pattern: the seeds of neighbouring places of a stream have little in common."""


class PhiloxGenerator(Generator):
    """A seed and an offset. `reserve` hands out a range of the stream."""

    __slots__ = ("_device", "_offset")

    def __init__(self, device: Any = "cuda") -> None:
        named = Device(device)
        self._device = Device("cuda", named.index or 0)
        self._lock = new_reentrant_lock()
        self._start(DEFAULT_SEED)

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._offset = 0

    @property
    def device(self) -> Device:
        """The device whose random numbers this generator makes."""
        return self._device

    def reserve(self, count: int) -> tuple[int, int]:
        """The seed and the offset for a draw in which each thread takes at most `count` words, rounded up to fours."""
        with self._lock:
            offset = self._offset
            self._offset = offset + (count + 3) // 4 * 4
            return self._seed, offset

    @contextlib.contextmanager
    def one_by_one(self) -> Iterator[OneByOne]:
        """The numbers of a generator of the host, seeded from a place of this stream: for what the host draws."""
        seed, offset = self.reserve(4)
        with Generator().manual_seed((seed + offset * _STEP) % 2**64).one_by_one() as source:
            yield source

    def get_offset(self) -> int:
        """How many words each thread has taken."""
        return self._offset

    def set_offset(self, offset: int) -> Generator:
        """Go on at another place of the stream, a multiple of 4."""
        if offset % 4:
            raise RuntimeError(f"offset must be a multiple of 4, not {offset}")
        self._offset = offset
        return self

    def clone_state(self) -> Generator:
        """A new generator that continues exactly as this one would."""
        clone = PhiloxGenerator(self._device)
        clone.set_state_bytes(self.state_bytes())
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_state, (str(self._device), self.state_bytes().tobytes())

    def state_bytes(self) -> Any:
        """The seed and the offset, in eight bytes each."""
        return np.frombuffer(np.array([self._seed, self._offset], np.uint64).tobytes(), np.uint8).copy()

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` gave."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        self.set_state_bytes(content(new_state))
        return self

    def set_state_bytes(self, state: Any) -> None:
        """Continue from a state that `state_bytes` or PyTorch's `get_state()` gave."""
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, but its elements are {state.dtype.name}")
        if state.size not in (_STATE_SIZE // 2, _STATE_SIZE):
            raise RuntimeError(f"RNG state is wrong size: {state.size} bytes in place of {_STATE_SIZE}")
        numbers = np.frombuffer(state.tobytes(), np.uint64)
        with self._lock:
            self._seed = int(numbers[0])
            self._offset = int(numbers[1]) if len(numbers) > 1 else 0


def _from_state(device: str, state: bytes) -> PhiloxGenerator:
    generator = PhiloxGenerator(device)
    generator.set_state_bytes(np.frombuffer(state, np.uint8))
    return generator


cuda_generator = PhiloxGenerator()
"""The generator of every random function on the first CUDA device that is given none."""
cuda_generator.seed()
_generators = [cuda_generator]
"""For each CUDA device that has been asked for, its generator."""
_making = new_lock()
_common_seed: list[int] = []
"""The last seed that was given to all devices: one that is used later begins from it, too."""


def generator_of(ordinal: int) -> PhiloxGenerator:
    """The generator of every random function on a CUDA device that is given none."""
    if ordinal >= len(_generators):
        with _making:
            for number in range(len(_generators), ordinal + 1):
                made = PhiloxGenerator(Device("cuda", number))
                made.manual_seed(_common_seed[0]) if _common_seed else made.seed()
                _generators.append(made)
    return _generators[ordinal]


def seed_all_devices(seed: int) -> None:
    """Start the numbers of all CUDA devices again from a seed."""
    _common_seed[:] = [seed]
    for each in _generators:
        each.manual_seed(seed)
