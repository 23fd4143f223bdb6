"""Convolutions whose channels have kernels of their own, of images in planes: generated kernels in cuDNN's place.

cuDNN computes those of 16-bit floats in planes as it does grouped convolutions, which takes many times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.depthwise import (
    SIZES,
    THREADS,
    forward_source,
    input_gradient_source,
    weight_gradient_source,
)
from ...._core.arrays.quick import name_of
from ...._core.geometry.moving_windows import Geometry
from ..arrays.array import form_of, of_form
from ..reductions.reduce import reducing
from ..runtime.driver import Launch, driver

_MOST_TAPS = 81
"""So many sums a thread holds."""
_MOST_PLACES = 1 << 31
_LEAST_LINES, _BLOCKS = 8, 1024
"""A block adds up at least so many lines, and there are about so many blocks where there are lines enough."""
_HALVES = frozenset(("float16", "bfloat16"))
_NUMBERS = "i" * len(SIZES.split())


def fits(forms: Any, geometry: Geometry) -> bool:
    """Whether input, weight and output are those of such a convolution: of 16-bit floats in planes, without gaps."""
    input, weight, output = forms
    return bool(
        input.ndim == 4
        and input.dtype == weight.dtype == output.dtype
        and name_of(input.dtype) in _HALVES
        and 1 < geometry.groups == input.shape[1] == weight.shape[0] == output.shape[1]
        and weight.shape[2] * weight.shape[3] <= _MOST_TAPS
        and min(input.size, weight.size, output.size) > 0
        and max(input.size, output.size) < _MOST_PLACES
        and all(form.flags.c_contiguous for form in forms)
    )


def forward(forms: Any, geometry: Geometry, biased: bool = False) -> Callable[..., None]:
    """What computes, given the addresses of input, weight and output and, if it is `biased`, of a bias."""
    launch, pack, count, numbers = _prepared(forward_source, forms, geometry, forms[2].size, "QQQQ", biased)

    def run(input: int, weight: int, output: int, bias: int = 0) -> None:
        launch(-(-count // THREADS), THREADS, pack(count, input, weight, bias, output, *numbers))

    return run


def input_gradient(forms: Any, geometry: Geometry) -> Callable[[int, int, int], None]:
    """What computes the gradient of the input, given where it, the weight and the gradient of the output are."""
    unit = set(geometry.stride) == {1}
    launch, pack, count, numbers = _prepared(input_gradient_source, forms, geometry, forms[0].size, "QQQ", unit)

    def run(input: int, weight: int, output: int) -> None:
        launch(-(-count // THREADS), THREADS, pack(count, output, weight, input, *numbers))

    return run


def weight_gradient(forms: Any, geometry: Geometry) -> Callable[[int, int, int], None]:
    """What computes the gradient of the weight, given where the input, it and the gradient of the output are."""
    weight, output = forms[1], forms[2]
    samples, channels, rows = output.shape[:3]
    lines = samples * rows
    splits = max(1, min(_BLOCKS // channels, lines // _LEAST_LINES))
    part = -(-lines // splits)
    splits = -(-lines // part)
    launch, pack, _, numbers = _prepared(weight_gradient_source, forms, geometry, lines, "QQQq", splits == 1)
    threads, blocks = driver().block_threads(THREADS), channels * splits
    partial = form_of((splits, weight.size), np.dtype(np.float32))
    add_up = None if splits == 1 else reducing("add", partial, 0, weight.dtype)

    def run(input: int, weight: int, output: int) -> None:
        if add_up is None:
            launch(blocks, threads, pack(lines, input, output, weight, part, *numbers))
            return
        sums = of_form(partial)
        launch(blocks, threads, pack(lines, input, output, sums.pointer, part, *numbers))
        add_up(sums.pointer, weight)

    return run


def _prepared(
    source: Callable[..., str], forms: Any, geometry: Geometry, count: int, fields: str, option: bool
) -> tuple[Launch, Callable[..., bytes], int, tuple[int, ...]]:
    """A kernel, what packs the fields of its arguments, how many elements it is about, and the geometry's numbers."""
    input, weight, output = forms
    launch = _compiled(source, name_of(input.dtype), *weight.shape[2:], option)
    sizes = *input.shape[1:], *output.shape[2:]
    numbers = *sizes, *geometry.stride, *geometry.padding, *geometry.dilation
    return launch, Struct(f"=q{fields}{_NUMBERS}").pack, count, numbers


@cache
def _compiled(source: Callable[..., str], name: str, tall: int, wide: int, option: bool) -> Launch:
    return driver().compile(source(name, tall, wide, option))
