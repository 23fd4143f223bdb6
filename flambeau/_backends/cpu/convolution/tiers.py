"""The three products of convolutions by the vendor's library, or else by generated code.

Each is the derivative of the others; they have the arguments of those in `_ops/nn/conv_kernels.py`, which go on where
these return None: what neither does or what is too little to be worth its preparation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._core.geometry.moving_windows import Geometry, Shape
from ...._core.process.reproducibility import REPRODUCIBILITY
from ...tiers import generated, library
from ..memory.workspace import DIRECT, Workspace

Array = Any

_WORTHWHILE = 1 << 15
"""From so many multiplications on, a kernel of the vendor's library is worth its preparation."""
_WORTHWHILE_IN_SPACE = 1 << 17
"""From so many multiplications on, one is for `correlate_transposed` in three dimensions. Kernels add up all channels
and positions of a window one by one, where the product of matrices in `conv_kernels.py` adds up channels first, with
smaller errors, and PyTorch's bits."""


_ORDERS = {
    (False, False): ("library", "conv"),
    (True, False): ("conv", "library"),
    (False, True): ("conv_one_tap", "library", "conv"),
    (True, True): ("conv_one_tap", "conv", "library"),
}
"""The families to ask, one after the other: by whether generated code is before the vendor's library, and by whether
windows have one element.
"""

_FEW = 1 << 12
"""Up to so many multiplications plain loops are quicker than NumPy's calls."""
_SMALL_IMAGE, _SMALL_PRODUCT = 20480, 1 << 22
"""What one image may have of elements, and of multiplications, to be left to generated code."""


def _is_small_image(input: Array, weight: Array, groups: int) -> bool:
    """Whether PyTorch convolves by a product of matrices: of these generated code has the bits, and sooner."""
    if input.shape[0] != 1 or groups != 1 or input.dtype != np.float32:
        return False
    taps: tuple[int, ...] = weight.shape[-2:]
    return math.prod(input.shape[:4]) <= _SMALL_IMAGE and (weight.ndim < 4 or min(taps) <= 3)


_NARROW = 3
"""Windows of images that are no wider have kernels of their own in the vendor's library, for each channel's weight."""
_WIDEST, _HIGHEST = 16, 16


def _has_own_windows(input: Array, outputs: int, groups: int) -> bool:
    """Whether each channel of sequences has a window of its own: generated code takes a tenth to a half of the time,
    forward and for both gradients.
    """
    return groups > 1 and groups == input.shape[1] == outputs and input.dtype == np.float32


def _has_wide_windows(input: Array, grad: Array, kernel: Shape, geometry: Geometry) -> bool:
    """Whether the gradient of each channel's weight is left to generated code, which takes a tenth of the time."""
    if input.dtype != np.float32 or not geometry.groups == input.shape[1] == grad.shape[1]:
        return False
    if len(kernel) != 2 or geometry.dilation[-1] != 1 or kernel[0] > _HIGHEST:
        return False
    return _NARROW < kernel[-1] <= _WIDEST


FEW_POSITIONS = 64
"""Images of no more positions are taken together by generated code, for the gradient of a weight of one element."""
_LITTLE_WEIGHT = 1 << 16


def _has_few_positions(input: Array, grad: Array) -> bool:
    """Whether generated code takes small images together, for windows of one element: the weight is not large."""
    if math.prod(grad.shape[2:]) > FEW_POSITIONS:
        return False
    return bool(grad.shape[1] * input.shape[1] <= _LITTLE_WEIGHT and input.dtype == np.float32)


def _first(name: str, products: int, *arguments: Any, workspace: Workspace, order: tuple[str, ...]) -> Array | None:
    """What the first does that does it: plain loops for little, for much the vendor's library or generated code."""
    for family in ("conv_few",) if products <= _FEW else order:
        kernels = library() if family == "library" else generated(family)
        if kernels is not None and (done := getattr(kernels, name)(*arguments, workspace=workspace)) is not None:
            return done
    return None


def _in_any_batch(name: str, first: Array, *arguments: Any) -> Array | None:
    """What generated code gives, which does not ask for the size of the batch."""
    kernels = generated("conv")
    return None if kernels is None else getattr(kernels, name)(first, *arguments)


def correlate(
    input: Array, weight: Array, bias: Array | None, output: Shape, geometry: Geometry, last: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """The convolution of `input` with `weight`, of which the first `output` positions are wanted, plus `bias`."""
    if REPRODUCIBILITY.product is not None and type(input) is np.ndarray:
        return _in_any_batch("correlate", input, weight, bias, output, geometry, last)
    products = input.shape[0] * weight.size * math.prod(output)
    if _FEW < products < _WORTHWHILE:
        return None
    small = _FEW < products <= _SMALL_PRODUCT and _is_small_image(input, weight, geometry.groups)
    lines = len(output) == 1 and not last and _has_own_windows(input, len(weight), geometry.groups)
    order = _ORDERS[small or lines, not last and math.prod(weight.shape[2:]) == 1]
    return _first("correlate", products, input, weight, bias, output, geometry, last, workspace=workspace, order=order)


def correlate_transposed(
    grad: Array, weight: Array, bias: Array | None, sizes: Shape, geometry: Geometry, last: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    if REPRODUCIBILITY.product is not None and type(grad) is np.ndarray:
        return _in_any_batch("correlate_transposed", grad, weight, bias, sizes, geometry, last)
    products = grad.size * math.prod(weight.shape[1:])
    worthwhile = _WORTHWHILE if len(sizes) < 3 else _WORTHWHILE_IN_SPACE
    if grad.shape[0] * weight.shape[1] * geometry.groups * math.prod(sizes) >= _FEW:  # each is looked at, all the same
        products = max(products, worthwhile)
    if _FEW < products < worthwhile:
        return None
    lines = len(sizes) == 1 and not last and weight.shape[1] == 1
    lines = lines and _has_own_windows(grad, len(weight), geometry.groups)
    order = _ORDERS[lines, not last and math.prod(weight.shape[2:]) == 1]
    given = grad, weight, bias, sizes, geometry, last
    return _first("correlate_transposed", products, *given, workspace=workspace, order=order)


def weight_gradient(
    input: Array, grad: Array, kernel: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Array | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    if REPRODUCIBILITY.samples is not None and type(input) is np.ndarray:
        return _weight_gradient_by_samples(input, grad, kernel, geometry, last)
    products = grad.size * (input.shape[1] // geometry.groups) * math.prod(kernel)
    if _FEW < products < _WORTHWHILE:
        return None
    alone = not last and math.prod(kernel) == 1
    if len(kernel) == 1:
        wide = not last and _has_own_windows(input, grad.shape[1], geometry.groups)
    else:
        wide = not last and _has_wide_windows(input, grad, kernel, geometry)
    order = _ORDERS[wide or (alone and _has_few_positions(input, grad)), alone]
    return _first("weight_gradient", products, input, grad, kernel, geometry, last, workspace=workspace, order=order)


def _weight_gradient_by_samples(
    input: Array, grad: Array, kernel: Shape, geometry: Geometry, last: bool
) -> Array | None:
    """`weight_gradient` as a tree over samples."""

    def of_sample(sample: int) -> Array | None:
        one = slice(sample, sample + 1)
        return _in_any_batch("weight_gradient", input[one], grad[one], kernel, geometry, last)

    first = of_sample(0)
    if first is None or len(input) == 1:
        return first
    return REPRODUCIBILITY.samples.samples_total(len(input), lambda sample: of_sample(sample) if sample else first)
