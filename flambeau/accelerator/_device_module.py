"""The module that is about a kind of device."""

from __future__ import annotations

import importlib
from typing import Any

from .._core.device import device as device_class


def get_device_module(device: Any = None) -> Any:
    """The module about a kind of device: `flambeau.cpu` for "cpu".

    Args:
        device: a device or its type; None means the current accelerator, or the CPU.

    Returns:
        the module.

    Example:
        >>> torch.get_device_module("cpu").__name__
        'flambeau.cpu'
    """
    kind = "cpu" if device is None else device_class(device).type
    try:
        return importlib.import_module(f"flambeau.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None
