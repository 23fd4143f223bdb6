"""The seed and the state of the random numbers of a CUDA device."""

from __future__ import annotations

from typing import Any

from .._backends.cuda.runtime.detection import count
from .._backends.cuda.runtime.synchronization import HERE
from .._core.device import usable_device
from .._core.random.philox import PhiloxGenerator, generator_of, seed_all_devices
from .._core.tensor import Tensor


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
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all devices again from `seed`.

    Args:
        seed (int): the seed.

    Example:
        >>> torch.cuda.manual_seed_all(0)
        >>> torch.cuda.initial_seed()
        0
    """
    seed_all_devices(int(seed))


def seed() -> None:
    """Start from a seed taken from the operating system.

    Example:
        >>> torch.cuda.seed()
    """
    _generator(None).seed()


def seed_all() -> None:
    """Start the random numbers of all devices from one seed taken from the operating system.

    Example:
        >>> torch.cuda.seed_all()
    """
    seed_all_devices(_generator(None).seed())


def initial_seed() -> int:
    """The seed that the device's numbers began from.

    Returns:
        int: the seed.

    Example:
        >>> torch.cuda.manual_seed(7)
        >>> torch.cuda.initial_seed()
        7
    """
    return _generator(None).initial_seed()


def _generator(device: Any) -> PhiloxGenerator:
    """The generator of a device; that of the one in use is there even where there is none."""
    if device == "cuda" or device is None:
        return generator_of(HERE.ordinal)
    return generator_of(usable_device(f"cuda:{device}" if isinstance(device, int) else device).index or 0)


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
    return _generator(device).get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all devices.

    Returns:
        list of Tensors: a state for each device.

    Example:
        >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
        True
    """
    return [generator_of(each).get_state() for each in range(max(count(), 1))]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue from a state that `get_rng_state` gave.

    Args:
        new_state (Tensor): the state.
        device: the device or its ordinal; None means the one in use. Default: `"cuda"`.

    Example:
        >>> torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    """
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Continue from states that `get_rng_state_all` gave.

    Args:
        new_states (list of Tensors): a state for each device.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for number, each in enumerate(new_states):
        generator_of(number).set_state(each)
