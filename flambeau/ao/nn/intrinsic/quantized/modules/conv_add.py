"""Convolutions of quantized images, to whose results something is added."""

from __future__ import annotations

from typing import Any

from flambeau.nn import functional as F

from ....quantized.modules import conv
from ....quantized.modules.utils import requantized

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(conv.Conv2d):
    """A convolution and a sum, rounded once."""

    def _of_both(self, input: Any, extra_input: Any) -> Any:
        """The codes of the result."""
        result = self._product(input.dequantize(), self.weight().dequantize())
        if self.bias() is not None:
            result = result + self.bias().reshape(-1, 1, 1)
        result = result + extra_input.dequantize()
        return requantized(F.relu(result) if self._relu else result, input, self.scale, self.zero_point)

    forward: Any = _of_both  # takes more than the `forward` of the convolution it is


class ConvAddReLU2d(ConvAdd2d):
    """A convolution of codes in two dimensions, an addition and a rectifier."""

    _relu = True
