"""Questions about optional packages, under the names of `torch.utils._import_utils`."""

from __future__ import annotations

import functools
import importlib
import importlib.util


def _check_module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available() -> bool:
    """Whether the package dill is installed."""
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> object:
    """The package dill, or None."""
    return importlib.import_module("dill") if dill_available() else None
