"""The functions behind layers, under the names of `torch.nn.functional`."""

from __future__ import annotations

from .._ops.registry import FUNCTIONS

globals().update(FUNCTIONS["nn.functional"])
__all__ = sorted(FUNCTIONS["nn.functional"])
