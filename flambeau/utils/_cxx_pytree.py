"""Nests of containers under the names of `torch.utils._cxx_pytree`: the functions of `_pytree`."""

from __future__ import annotations

from typing import Any

from . import _pytree


def __getattr__(name: str) -> Any:
    return getattr(_pytree, name)
