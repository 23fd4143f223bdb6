"""The seed and the state of the random numbers of a CUDA device."""

from __future__ import annotations

from typing import Any

from .._core.random.philox import cuda_generator
from .._core.tensor import Tensor
from ._ordinals import place_of


def manual_seed(seed: int) -> None:
    """Start the random numbers of the device again from `seed`.

    Args:
        seed (int): the seed.

    Example:
        >>> torch.cuda.manual_seed(0)
        >>> first = torch.rand(2, device="cuda")
        >>> torch.cuda.manual_seed(0)
        >>> torch.equal(first, torch.rand(2, device="cuda"))
        True
    """
    cuda_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    """Start from a seed taken from the operating system.

    Example:
        >>> torch.cuda.seed()
    """
    cuda_generator.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed that the device's numbers began from.

    Returns:
        int: the seed.

    Example:
        >>> torch.cuda.manual_seed(7)
        >>> torch.cuda.initial_seed()
        7
    """
    return cuda_generator.initial_seed()


def _check(device: Any) -> None:
    """Refuse what is no device; the generator itself is there without one."""
    if device != "cuda" and device is not None:
        place_of(device)


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the device's generator: its seed and its offset as bytes.

    Args:
        device: the device or its ordinal; None means the one in use. Default: `"cuda"`.

    Returns:
        Tensor: the state, as a tensor of bytes.

    Example:
        >>> state = torch.cuda.get_rng_state()
        >>> first = torch.rand(2, device="cuda")
        >>> torch.cuda.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2, device="cuda"))
        True
    """
    _check(device)
    return cuda_generator.get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all devices.

    Returns:
        list of Tensors: a state for each device.

    Example:
        >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
        True
    """
    return [cuda_generator.get_state()]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue from a state that `get_rng_state` gave.

    Args:
        new_state (Tensor): the state.
        device: the device or its ordinal; None means the one in use. Default: `"cuda"`.

    Example:
        >>> torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    """
    _check(device)
    cuda_generator.set_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Continue from states that `get_rng_state_all` gave.

    Args:
        new_states (list of Tensors): a state for each device.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for each in new_states:
        cuda_generator.set_state(each)
