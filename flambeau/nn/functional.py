"""The functions behind layers, under the names of `torch.nn.functional`."""

from __future__ import annotations

from .._ops.registry import namespace

__getattr__, __all__ = namespace("nn.functional")
