"""The functions of Fourier transforms under their compiled module's names: `fft_` before each."""

from __future__ import annotations

from typing import Any

from flambeau import fft


def __getattr__(name: str) -> Any:
    found = getattr(fft, name.removeprefix("fft_"), None) if name.startswith("fft_") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
