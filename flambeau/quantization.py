"""The older place of `torch.ao.quantization`."""

from __future__ import annotations

from typing import Any

from .ao import quantization


def __getattr__(name: str) -> Any:
    return getattr(quantization, name)


def __dir__() -> list[str]:
    return dir(quantization)
