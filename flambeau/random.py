"""The state of the random numbers, under the names of `torch.random`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import cuda
from ._core.generator import default_generator
from ._ops.random.draws import get_rng_state, initial_seed, manual_seed, seed, set_rng_state, thread_safe_generator

__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    "thread_safe_generator",
]  # fmt: skip


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """Random numbers drawn in this context leave those drawn after it as they would have been.

    Args:
        devices: the CUDA devices whose numbers are protected too; None means all.
        enabled (bool): whether it does anything. Default: `True`.
        device_type (str, optional): the type of device.

    Returns:
        a context manager.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     _ = torch.rand(10)
        >>> torch.rand(1)
        tensor([0.4963])
    """
    if not enabled:
        yield
        return
    state, of_devices = get_rng_state(), _states_of_devices(devices)
    try:
        yield
    finally:
        set_rng_state(state)
        for index, each in of_devices.items():
            cuda.set_rng_state(each, index)


def _states_of_devices(devices: Any) -> dict[Any, Any]:
    """The states of the generators of CUDA devices, all of them if `devices` is None; none before the first use."""
    if devices is None:
        devices = range(cuda.device_count()) if cuda.is_initialized() else ()
    return {each: cuda.get_rng_state(each) for each in devices}
