"""Gradients of weights of 1x1 convolutions as products of matrices, where all GPUs of an architecture must do alike.

cuDNN computes them by products, too, whose sums it divides as suits the GPU at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.geometry.moving_windows import Geometry
from ..arrays.array import DeviceArray, at, form_of
from ..linalg.fixed_order import on_any_gpu


def fits(forms: Any, geometry: Geometry) -> bool:
    """Whether input, weight and output are those of such a convolution, whose positions are those of the input."""
    weight = forms[1]
    stride, padding, _, groups = geometry
    return groups == 1 and set(weight.shape[2:]) == set(stride) == {1} and not any(padding)


def weight_gradient(forms: Any, geometry: Geometry) -> Callable[[int, int, int], None]:
    """What computes it, given where the input, it and the gradient of the output are."""
    input, weight, output = forms
    columns, rows = input.shape[1], output.shape[1]
    positions = input.size // columns
    of_rows, of_columns = (form_of((positions, each), input.dtype) for each in (rows, columns))
    multiply = on_any_gpu(form_of((rows, columns), weight.dtype), of_rows.T, of_columns, False)

    def run(input: int, weight: int, output: int) -> None:
        images, gradients = (_channels_last(place, form) for place, form in ((input, forms[0]), (output, forms[2])))
        multiply(weight, gradients.pointer, images.pointer)

    return run


def _channels_last(place: int, form: Any) -> DeviceArray:
    """The array of this form, or a copy of it, whose channels lie side by side."""
    turned = at(place, form).transpose((0, *range(2, form.ndim), 1))
    return turned if turned.form.flags.c_contiguous else turned.copy()
