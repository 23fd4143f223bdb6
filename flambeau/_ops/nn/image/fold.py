"""Sliding blocks of images as columns, and back: `unfold` and `fold` of `nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._backends import arrays
from ...._core.dtype import INTEGER, LEGACY_NAMES
from ...._core.geometry.moving_windows import Geometry, Shape, correlated_sizes
from ...._core.size import fits_int64
from ...._core.tensor import Tensor
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.arguments.scalar import integer
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, primitive
from ...._dispatch.public.registry import public
from ..conv_kernels import sum_of_windows, windows_of


def _im2col_gradient(
    grad: Tensor,
    self_sym_sizes: Shape,
    kernel_size: Shape,
    dilation: Shape,
    padding: Shape,
    stride: Shape,
) -> Tensor:
    return _col2im(grad, self_sym_sizes[-2:], kernel_size, dilation, padding, stride)


@primitive("Im2ColBackward0", axes=Images(3, channels=False), self=_im2col_gradient)
def _im2col(self: Array, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Array:
    images = self if self.ndim == 4 else self[None]
    geometry = Geometry(stride, padding, dilation, 1)
    windows = windows_of(images, kernel_size, geometry)  # (batch, channels, *output, *kernel)
    count, channels, *output = windows.shape[:4]
    columns = arrays.contiguous(windows.transpose(0, 1, 4, 5, 2, 3))
    columns = columns.reshape(count, channels * kernel_size[0] * kernel_size[1], output[0] * output[1])
    return columns if self.ndim == 4 else columns[0]


def _col2im_gradient(grad: Tensor, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Tensor:
    return _im2col(grad, kernel_size, dilation, padding, stride)


@primitive("Col2ImBackward0", axes=Images(2, channels=False), self=_col2im_gradient)
@in_single
def _col2im(
    self: Array, output_size: Shape, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape
) -> Array:
    columns = self if self.ndim == 3 else self[None]
    geometry = Geometry(stride, padding, dilation, 1)
    blocks = correlated_sizes(output_size, kernel_size, geometry)
    channels = columns.shape[1] // (kernel_size[0] * kernel_size[1])
    windows = columns.reshape(len(columns), channels, *kernel_size, *blocks).transpose(0, 1, 4, 5, 2, 3)
    images = sum_of_windows(windows, output_size, geometry)
    return images if self.ndim == 3 else images[0]


_LISTS = (tuple, list, dict, bytes, Tensor, np.ndarray)
"""What is a list of numbers, though it may hold but one."""


def _pair(function: str, argument: str, position: int, value: Any) -> Shape:
    if type(value) is int and -(2**63) <= value < 2**63:  # the usual case, without a call
        return value, value
    entries = tuple(value) if isinstance(value, _LISTS) else (value, value)
    numbers = []
    for place, each in enumerate(entries):
        number = integer(each, place)
        if number is None:
            raise TypeError(
                f"{function}(): argument '{argument}' (position {position}) must be tuple of ints, but found element "
                f"of type {type(each).__name__} at pos {place}"
            )
        if not fits_int64(number):
            raise TypeError(
                f"{function}(): argument '{argument}' failed to unpack the object at pos {place + 1} with error "
                '"Overflow when unpacking long long"'
            )
        numbers.append(number)
    if len(numbers) != 2:
        raise RuntimeError(f"It is expected {argument} equals to 2, but got size {len(numbers)}")
    return numbers[0], numbers[1]


def _check_numbers(kernel: Shape, dilation: Shape, padding: Shape, stride: Shape) -> None:
    for words, name, (height, width) in (
        ("kernel size", "kernel", kernel),
        ("dilation", "dilation", dilation),
        ("stride", "stride", stride),
    ):
        if height <= 0 or width <= 0:
            raise RuntimeError(
                f"{words} should be greater than zero, but got {name}_height: {height} {name}_width: {width}"
            )
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def _check_dtype(name: str, input: Tensor) -> None:
    if input._kind.dtype.category == INTEGER:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for '{LEGACY_NAMES[input._kind.dtype]}'")


@public("nn.functional.unfold", function=False, method=False, name="unfold")
def unfold_images(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Each block that a kernel covers on its way over an image, as a column."""
    kernel = _pair("im2col", "kernel_size", 2, kernel_size)
    gaps = _pair("im2col", "dilation", 3, dilation)
    around = _pair("im2col", "padding", 4, padding)
    steps = _pair("im2col", "stride", 5, stride)
    _check_numbers(kernel, gaps, around, steps)
    shape = input._array.shape
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        if len(shape) < 3:
            raise IndexError(f"Dimension out of range: images have 3 or 4 dimensions, not the shape {list(shape)}")
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    blocks = correlated_sizes(shape[-2:], kernel, Geometry(steps, around, gaps, 1))
    if min(blocks) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={kernel}, dilation={gaps}, padding={around}, "
            f"calculated shape of the array of sliding blocks as {blocks}, but its components must be at least one."
        )
    _check_dtype("im2col", input)
    return _im2col(input, kernel, gaps, around, steps)


@public("nn.functional.fold", function=False, method=False)
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The sum of columns, each put back on the block of an image of `output_size` that it stands for."""
    wanted, kernel, gaps, around, steps = (
        _pair("col2im", name, position, value)
        for position, (name, value) in enumerate(
            (
                ("output_size", output_size),
                ("kernel_size", kernel_size),
                ("dilation", dilation),
                ("padding", padding),
                ("stride", stride),
            ),
            2,
        )
    )
    _check_numbers(kernel, gaps, around, steps)
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    if shape[-2] % (kernel[0] * kernel[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    blocks = correlated_sizes(wanted, kernel, Geometry(steps, around, gaps, 1))
    if min(blocks) < 1 or blocks[0] * blocks[1] != shape[-1]:
        raise RuntimeError(
            f"Given output_size={wanted}, kernel_size={kernel}, dilation={gaps}, padding={around}, stride={steps}, "
            "expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{blocks[0]} * {blocks[1]} = {blocks[0] * blocks[1]}, but got input.size(2)={shape[-1]}."
        )
    _check_dtype("col2im", input)
    return _col2im(input, wanted, kernel, gaps, around, steps)
