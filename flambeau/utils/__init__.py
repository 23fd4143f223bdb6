"""Utilities around training."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau.utils import checkpoint, hooks

__all__ = ["TrainingState", "checkpoint", "data", "deterministic", "dlpack", "hooks", "training_state"]
_LATER = frozenset({"data", "deterministic", "dlpack", "training_state"})


def __getattr__(name: str) -> Any:
    if name in _LATER:  # loads on first use
        return importlib.import_module(f".{name}", __name__)
    if name == "TrainingState":
        return importlib.import_module(".training_state", __name__).TrainingState
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
