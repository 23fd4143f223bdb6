"""Ops that are no operator of PyTorch's, each with its own parameters: `torch.ops.flambeau.update_parameters`."""

from __future__ import annotations

from typing import Any

from .._dispatch.op import OPS
from .._dispatch.public.overloads import packet
from .._dispatch.public.registry import load_all


def __getattr__(name: str) -> Any:
    if name not in OPS:
        load_all()
    if name.startswith("__") or name not in OPS:
        raise AttributeError(f"'_OpNamespace' 'flambeau' object has no attribute '{name}'")
    return packet("flambeau", name)
