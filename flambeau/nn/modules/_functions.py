"""Functions behind some layers, under the names of `torch.nn.modules._functions`."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ...utils.hooks import BackwardHookFunction
from . import normalization

__all__ = ["BackwardHookFunction", "CrossMapLRN2d"]


class CrossMapLRN2d:
    """What the layer of this name computes: `CrossMapLRN2d.apply(input, size, alpha, beta, k)`."""

    @staticmethod
    def apply(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Any:
        """The input divided by what the squares of neighbouring channels say."""
        return normalization.CrossMapLRN2d(size, alpha, beta, k)(input)
