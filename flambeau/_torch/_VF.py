"""The functions of the package under the name of the module that programs for PyTorch import them from."""

from __future__ import annotations

from typing import Any

import flambeau


def __getattr__(name: str) -> Any:
    return getattr(flambeau, name)
