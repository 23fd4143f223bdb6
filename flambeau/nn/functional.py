"""The functions behind layers, under the names of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from .._dispatch.registry import namespace

_function_named, __all__ = namespace("nn.functional")


def __getattr__(name: str) -> Any:
    function = globals()[name] = _function_named(name)  # found once, then kept: layers look it up in every call
    return function
