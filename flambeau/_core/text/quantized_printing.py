"""How quantized tensors print: the numbers that they stand for, and what the codes mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import CPU
from ..quantized import QuantizedTensor, codes_of, dequantize_array
from ..tensor import wrap
from .printing import _append_suffixes, _format_values

_PREFIX = "tensor("


def quantized_repr(tensor: QuantizedTensor) -> str:
    """The text of a quantized tensor."""
    quantizer: Any = tensor._quantizer
    suffixes = [f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}", f"quantization_scheme={quantizer.scheme}"]
    if quantizer.axis is None:
        suffixes += [f"scale={quantizer.scale}", f"zero_point={quantizer.zero_point}"]
    else:
        scales, zero_points = wrap(quantizer.scale, CPU), wrap(quantizer.zero_point, CPU)
        suffixes += [f"scale={scales!r}", f"zero_point={zero_points!r}", f"axis={quantizer.axis}"]
    numbers = np.asarray(dequantize_array(codes_of(tensor), quantizer))
    contents = _format_values(numbers, len(_PREFIX)) if numbers.size else "[]"
    return _append_suffixes(_PREFIX + contents, suffixes, indent=len(_PREFIX))
