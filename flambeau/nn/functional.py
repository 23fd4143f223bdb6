"""The functions behind layers, under the names of `torch.nn.functional`."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.public.registry import namespace

_function_named, __all__, __dir__ = namespace("nn.functional")


def sigmoid(input: Any) -> Any:
    """Compute the logistic function of each element, `1 / (1 + exp(-x))`.

    It calls the method, which is what graphs record.

    Args:
        input (Tensor): the input tensor.

    Returns:
        Tensor: of the shape of `input`.
    """
    return input.sigmoid()


def tanh(input: Any) -> Any:
    """Compute the hyperbolic tangent of each element.

    It calls the method, which is what graphs record.

    Args:
        input (Tensor): the input tensor.

    Returns:
        Tensor: of the shape of `input`.
    """
    return input.tanh()


_MODULES = {"_Reduction": "_reduction", "grad": "grad"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__package__}.{_MODULES[name]}")
    try:
        function = _function_named(name)
    except AttributeError:
        from . import _attention_helpers, _scaled_products

        home = next((each for each in (_attention_helpers, _scaled_products) if name in each.__all__), None)
        if home is None:
            raise
        function = getattr(home, name)
    globals()[name] = function  # found once, then kept: layers look it up in every call
    return function
