"""The seed and the state of the random numbers of a CUDA device."""

from __future__ import annotations

from typing import Any

from .._core.random.philox import cuda_generator
from .._core.tensor import Tensor
from ._ordinals import place_of


def manual_seed(seed: int) -> None:
    """Start the random numbers of the device again from `seed`."""
    cuda_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    """Start from a seed taken from the operating system."""
    cuda_generator.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed that the device's numbers began from."""
    return cuda_generator.initial_seed()


def _check(device: Any) -> None:
    """Refuse what is no device; the generator itself is there without one."""
    if device != "cuda" and device is not None:
        place_of(device)


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the device's generator: its seed and its offset as bytes."""
    _check(device)
    return cuda_generator.get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all devices."""
    return [cuda_generator.get_state()]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue from a state that `get_rng_state` gave."""
    _check(device)
    cuda_generator.set_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Continue from states that `get_rng_state_all` gave."""
    for each in new_states:
        cuda_generator.set_state(each)
