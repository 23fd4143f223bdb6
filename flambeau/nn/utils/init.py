"""Modules without initial values."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a module whose parameters and buffers are left uninitialised: quicker, and no random numbers are drawn.

    >>> flambeau.nn.utils.skip_init(flambeau.nn.Linear, 1, 5)
    Linear(in_features=1, out_features=5, bias=True)

    Args:
        module_cls: the class of the module; its constructor takes `device`.
        *args: positional arguments of the constructor.
        **kwargs: keyword arguments of the constructor.

    Returns:
        Module: the module.
    """
    from ..modules.module import Module

    if not isinstance(module_cls, type):
        raise TypeError(f"skip_init() expects the class of a module; got {type(module_cls).__name__}")
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final_device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=final_device)
