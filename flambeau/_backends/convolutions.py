"""The three products of convolutions by the vendor's library, or else by generated code.

Each is the derivative of the others; they have the arguments of those in `_ops/nn/conv_kernels.py`, which go on where
these return None: arrays of other libraries, and what neither does or what is too little to be worth its preparation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.backend import faster_for, is_of_host
from .._core.geometry.moving_windows import Geometry, Shape
from .tiers import generated, library

Array = Any

_WORTHWHILE = 1 << 17
"""From so many multiplications on a kernel of theirs is worth its preparation."""


_FEW = 1 << 12
"""Up to so many multiplications plain loops are quicker than NumPy's calls."""


_BLOCK = 16
"""The vendor's library computes so many channels at once, and fills up what is missing with zeros."""

_MOST_FILLING = 1.2
"""Above so many multiplications for each that is asked for, generated code is quicker."""


def _is_filled_up(array: Array, inputs: int, outputs: int, geometry: Geometry, last: bool) -> bool:
    """Whether many of the library's multiplications would be with zeros; less than a block of inputs is not filled."""
    if last or geometry.groups > 1 or array.dtype.itemsize < 4 or not outputs:
        return False
    filled = -(-outputs // _BLOCK) * _BLOCK / outputs
    if inputs > _BLOCK:
        filled *= -(-inputs // _BLOCK) * _BLOCK / inputs
    return filled > _MOST_FILLING


def _first(name: str, products: int, *arguments: Any, by_library: bool = True) -> Array | None:
    """What the first does that does it: plain loops for little, for much the vendor's library or generated code."""
    first = arguments[0]
    families = ("library", "conv") if by_library else ("conv", "library")
    for family in ("conv_few",) if products <= _FEW else families:
        kernels = _kernels(family, first)
        if kernels is not None and (done := getattr(kernels, name)(*arguments)) is not None:
            return done
    return None


def _kernels(family: str, array: Array) -> Any:
    """The functions of a family that can read `array`; other backends' convolutions are all of one family."""
    if type(array) is np.ndarray:
        return library() if family == "library" else generated(family)
    return faster_for(array, family if is_of_host(type(array)) else "conv")


def correlate(
    input: Array, weight: Array, bias: Array | None, output: Shape, geometry: Geometry, last: bool
) -> Array | None:
    """The convolution of `input` with `weight`, of which the first `output` positions are wanted, plus `bias`."""
    products = input.shape[0] * weight.size * math.prod(output)
    if _FEW < products < _WORTHWHILE // 4 and is_of_host(type(input)):
        return None
    by_library = products <= _FEW or not _is_filled_up(input, weight.shape[1], weight.shape[0], geometry, last)
    return _first("correlate", products, input, weight, bias, output, geometry, last, by_library=by_library)


def spread(
    grad: Array, weight: Array, bias: Array | None, sizes: Shape, geometry: Geometry, last: bool
) -> Array | None:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    products = grad.size * math.prod(weight.shape[1:])
    if _FEW < products < _WORTHWHILE and is_of_host(type(grad)):
        return None
    return _first("spread", products, grad, weight, bias, sizes, geometry, last)


def weight_gradient(input: Array, grad: Array, kernel: Shape, geometry: Geometry, last: bool) -> Array | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    products = grad.size * (input.shape[1] // geometry.groups) * math.prod(kernel)
    if _FEW < products < _WORTHWHILE and is_of_host(type(grad)):
        return None
    inputs, outputs = input.shape[1], grad.shape[1]
    by_library = inputs <= _BLOCK or not _is_filled_up(input, inputs, outputs, geometry, last)
    return _first("weight_gradient", products, input, grad, kernel, geometry, last, by_library=by_library)
