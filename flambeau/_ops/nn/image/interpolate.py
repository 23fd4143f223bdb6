"""Resizing images and signals: nearest, linear, cubic, filtered."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...._core.arrays.quick import dim_moved
from ...._core.arrays.room import ensure_room
from ...._core.dtype import FLOAT, float32, float64, uint8
from ...._core.dtype import dtype as DType
from ...._core.geometry.moving_windows import channel_last
from ...._core.size import fits_int64
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, FullIf, on
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...reduce.reductions import no_kernel
from ..pool.adaptive_pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from ..pool.pool_window import Sizes, empty, is_integer, laid_out
from . import resample
from .linear_maps import Taps, apply_taps, channels_to_end, combined_places, take_combined, transposed

Rule = Callable[[int, int, bool, float | None, Any], Taps]
Factors = tuple[float, ...] | None


_KEPT = 64
"""So many lists of taps are kept: a network resizes by few of them, and to make one takes longer than a small image."""
_MANY = 2**16
"""From so many elements on one dimension after the other is resized: places of all of them would fill the cache."""


@functools.lru_cache(_KEPT)
def _lines(
    rule: Rule, spatial: Sizes, counts: Sizes, align_corners: bool, factors: Factors, real: Any
) -> tuple[Taps, ...]:
    """The taps of each dimension."""
    return tuple(
        [
            rule(size, count, align_corners, None if factors is None else factors[dim], real)
            for dim, (size, count) in enumerate(zip(spatial, counts, strict=True))
        ]
    )


@functools.lru_cache(_KEPT)
def _transposed_lines(
    rule: Rule, spatial: Sizes, counts: Sizes, align_corners: bool, factors: Factors, real: Any
) -> tuple[Taps, ...]:
    """The taps of the transpose along each dimension."""
    return tuple(map(transposed, _lines(rule, spatial, counts, align_corners, factors, real), spatial))


class _Resizing(NamedTuple):
    """What resizing takes that depends on shapes and dtypes alone."""

    places: Any
    """Where each output is taken from, all dimensions as one; None: one dimension after the other is resized."""
    lines: tuple[Taps, ...]
    integers: bool
    skipping: bool
    """Whether a dimension of unchanged size is left alone: by filters, and by all that is done to bytes."""


@functools.lru_cache(_KEPT)
def _resizing(
    rule: Rule, shape: Sizes, dtype: Any, counts: Sizes, align_corners: bool, factors: Factors, last: bool, held: bool
) -> _Resizing:
    """How arrays of a shape are resized; `held`: in memory, of which there must be enough."""
    rank = len(counts)
    spatial = shape[-rank:]
    if held:
        ensure_room((*shape[:-rank], *counts), dtype.itemsize)
    integers, nearest = dtype.kind == "u", rule in resample.NEAREST
    real = (np.float32 if nearest else np.float64) if integers else dtype.type
    lines = _lines(rule, spatial, counts, align_corners, factors, real)
    places = None
    if nearest and not last and math.prod(counts) < _MANY:
        places = combined_places([taps.indices[0] for taps in lines], spatial)
    skipping = lines[0].weights is not None and (integers or lines[0].counts is not None)
    return _Resizing(places, lines, integers, skipping)


def _widened(array: Any) -> Any:
    """Half precision as single precision; the weights know what they are for."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _resized(array: Any, rule: Rule, counts: Sizes, align_corners: bool, factors: Factors, last: bool) -> Any:
    shape, held = array.shape, type(array) is np.ndarray
    places, lines, integers, skipping = _resizing(rule, shape, array.dtype, counts, align_corners, factors, last, held)
    if places is not None:
        return take_combined(array, places, counts)
    rank = len(counts)
    spatial = shape[-rank:]
    if skipping and spatial == counts:
        result = empty(shape, array.dtype, last, array)
        result[...] = array
        return result
    wide = _widened(array) if array.dtype.itemsize == 2 else array
    result, moved = dim_moved(wide, 1, -1) if last else wide, last
    for axis in range(-1, -rank - 1, -1):
        taps = lines[axis]
        if skipping and spatial[axis] == counts[axis]:
            continue
        if taps.weights is not None and integers:
            taps, bits = resample.fixed_point(taps)
            total = apply_taps(result.astype(np.int32), axis - moved, taps)
            result = np.clip((total + (1 << (bits - 1))) >> bits, 0, 255).astype(np.uint8)
        else:
            result = apply_taps(result, axis - moved, taps)
    if moved or not result.flags.c_contiguous:
        result = laid_out(dim_moved(result, -1, 1) if moved else result, last)
    return result if result.dtype is array.dtype else result.astype(array.dtype)


def _pulled_back(grad: Any, rule: Rule, input_size: Sizes, align_corners: bool, factors: Factors, rank: int) -> Any:
    spatial = input_size[-rank:]
    lines = _transposed_lines(rule, spatial, grad.shape[-rank:], align_corners, factors, grad.dtype.type)
    result, moved = channels_to_end(_widened(grad), rank)
    for axis in range(-rank, 0):
        result = apply_taps(result, axis - moved, lines[axis])
    return laid_out(dim_moved(result, -1, 1) if moved else result, moved).astype(grad.dtype, copy=False)


def _resampling(name: str, rank: int, rule: Rule, kernel_name: str) -> Primitive[..., Tensor]:
    """The op that resizes the last `rank` dimensions by a rule, with its transpose as derivative."""

    def upsample(self: Array, output_size: Sizes, align_corners: bool | None, scales: Factors) -> Array:
        return _resized(self, rule, output_size, bool(align_corners), scales, channel_last(self, rank))

    def upsample_backward(
        self: Array, output_size: Sizes, input_size: Sizes, align_corners: bool | None, scales: Factors
    ) -> Array:
        return _pulled_back(self, rule, input_size, bool(align_corners), scales, rank)

    def forward_again(grad: Tensor, output_size: Any, align_corners: Any, scales: Any) -> Tensor:
        return forward(grad, output_size, align_corners, scales)

    def gradient(grad: Tensor, self_sym_sizes: Any, output_size: Any, align_corners: Any, scales: Any) -> Tensor:
        return backward(grad, output_size, tuple(self_sym_sizes), align_corners, scales)

    def resized(self: Array, output_size: Sizes, *choices: Any) -> Array:
        return empty((*self.shape[:-rank], *output_size), self.dtype, channel_last(self, rank), self)

    def pulled_back(self: Array, output_size: Sizes, input_size: Sizes, *choices: Any) -> Array:
        return empty(input_size, self.dtype, channel_last(self, rank), self)

    upsample.__name__, upsample_backward.__name__ = kernel_name, f"{kernel_name}_backward"
    forward = primitive(f"{name}Backward0", axes=Images(), self=gradient, shape=resized)(upsample)
    backward = primitive(
        f"{name}BackwardBackward0", axes=Images(sizes="input_size"), self=forward_again, shape=pulled_back
    )(upsample_backward)
    forward.is_linear = backward.is_linear = True
    return forward


_OPS = {
    ("nearest", 1): _resampling("UpsampleNearest1D", 1, resample.nearest, "upsample_nearest1d"),
    ("nearest", 2): _resampling("UpsampleNearest2D", 2, resample.nearest2d, "upsample_nearest2d"),
    ("nearest", 3): _resampling("UpsampleNearest3D", 3, resample.nearest, "upsample_nearest3d"),
    ("nearest-exact", 1): _resampling("UpsampleNearestExact1D", 1, resample.nearest_exact, "_upsample_nearest_exact1d"),
    ("nearest-exact", 2): _resampling(
        "UpsampleNearestExact2D", 2, resample.nearest_exact2d, "_upsample_nearest_exact2d"
    ),
    ("nearest-exact", 3): _resampling("UpsampleNearestExact3D", 3, resample.nearest_exact, "_upsample_nearest_exact3d"),
    ("linear", 1): _resampling("UpsampleLinear1D", 1, resample.linear, "upsample_linear1d"),
    ("bilinear", 2): _resampling("UpsampleBilinear2D", 2, resample.linear2d, "upsample_bilinear2d"),
    ("trilinear", 3): _resampling("UpsampleTrilinear3D", 3, resample.linear, "upsample_trilinear3d"),
    ("bicubic", 2): _resampling("UpsampleBicubic2D", 2, resample.cubic, "upsample_bicubic2d"),
}
_FILTERS = {
    "bilinear": _resampling("UpsampleBilinear2DAa", 2, resample.linear_filter, "_upsample_bilinear2d_aa"),
    "bicubic": _resampling("UpsampleBicubic2DAa", 2, resample.cubic_filter, "_upsample_bicubic2d_aa"),
    "lanczos": _resampling("UpsampleLanczos2DAa", 2, resample.lanczos_filter, "_upsample_lanczos2d_aa"),
}
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3}


def _run(
    op: Primitive[..., Tensor], input: Tensor, counts: Sizes, align_corners: bool | None, factors: Factors
) -> Tensor:
    """Check the dtype, then resize."""
    dtype = input._kind.dtype
    if dtype is not float32 and dtype is not float64 and not _takes(op, dtype, len(counts)):
        raise no_kernel(op.name, input)
    return op(input, counts, align_corners, factors)


def _check_sizes(shape: Sizes, counts: Sizes) -> None:
    if min(shape[2:]) <= 0 or min(counts) <= 0:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({_listed(shape[2:])}) output "
            f"({_listed(counts)})"
        )
    if shape[1] == 0:
        raise RuntimeError(f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {list(shape)}")


def _listed(numbers: Sizes) -> str:
    return ", ".join(f"{letter}: {number}" for letter, number in zip("DHW"[-len(numbers) :], numbers, strict=True))


def _takes(op: Primitive[..., Tensor], dtype: DType, rank: int) -> bool:
    """Whether an op resizes a dtype other than those that all of them do."""
    if dtype is uint8:
        return "nearest" in op.name or rank == 2
    return dtype.category == FLOAT and not op.name.endswith("_aa")


def _scaled(spatial: Sizes, factors: tuple[Any, ...]) -> Sizes:
    return tuple([math.floor(float(each) * factor) for each, factor in zip(spatial, factors, strict=True)])


def _sizes(spatial: Sizes, size: Any, factors: Any) -> Sizes:
    rank = len(spatial)
    if size is None:
        return _scaled(spatial, factors)
    numbers = size if isinstance(size, (tuple, list)) else [size] * rank
    if not all(map(is_integer, numbers)) or (numbers and isinstance(numbers[0], bool)):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(each) for each in numbers]}"
        )
    for position, each in enumerate(numbers, 1):
        if not fits_int64(int(each)):
            raise TypeError(
                f"argument 'output_size' failed to unpack the object at pos {position} with error "
                '"Overflow when unpacking long long"'
            )
    return tuple([int(each) for each in numbers])


def _check_count(name: str, word: str, letter: str, given: Any, spatial: Sizes) -> None:
    if isinstance(given, (tuple, list)) and len(given) != len(spatial):
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(spatial)} and {word} of {'shape ' if letter == 's' else ''}{given}. Please provide input tensor "
            f"in (N, C, d1, d2, ...,dK) format and {word} in ({letter}1, {letter}2, ...,{letter}K) format."
        )


def _check_mode(mode: str, align_corners: bool | None, antialias: bool, dims: int) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
            f"trilinear (got {mode})"
        )
    if align_corners is not None and not isinstance(align_corners, bool):
        raise TypeError(f"interpolate(): argument 'align_corners' must be bool, not {type(align_corners).__name__}")
    if mode == "lanczos":
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
    if antialias and not (mode in _FILTERS and dims == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as "
            f"input (got mode {mode} and {dims}-D input)"
        )


def _request(
    shape: Sizes, size: Any, scale_factor: Any, mode: str, align_corners: bool | None,
    recompute_scale_factor: bool | None, antialias: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The op that does what a call asks for, and its further arguments."""
    spatial, dims = shape[2:], len(shape)
    _check_mode(mode, align_corners, antialias, dims)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    rank = len(spatial)
    factors: Any = None
    if size is not None:
        if isinstance(size, (tuple, list)):
            _check_count("output", "output size", "o", size, spatial)
    else:
        if isinstance(scale_factor, Tensor) and scale_factor.dim():
            kind = ValueError if mode == "area" else TypeError
            raise kind("interpolate(): argument 'scale_factor' must be a number or a tuple of them, not Tensor")
        _check_count("scale_factor", "scale_factor", "s", scale_factor, spatial)
        factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * rank
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    counts = _sizes(spatial, size, factors)
    if mode == "area" and 3 <= dims <= 5:
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1], counts
    factors = None if factors is None or recompute_scale_factor else tuple([float(each) for each in factors])
    corners: bool | None
    if antialias:
        op, corners = _FILTERS[mode], bool(align_corners)
    elif isinstance(mode, str) and (mode, rank) in _OPS:
        op, corners = _OPS[mode, rank], None if mode.startswith("nearest") else bool(align_corners)
    elif isinstance(mode, str) and mode in _RANKS and 3 <= dims <= 5:
        raise NotImplementedError(f"Got {dims}D input, but {mode} mode needs {_RANKS[mode] + 2}D input")
    else:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims}D) for the modes: {_MODES} (got "
            f"{mode})"
        )
    _check_sizes(shape, counts)
    return op, counts, corners, factors


_NUMBERS = frozenset((int, float))
_OPTIONS = frozenset((str, bool, type(None)))
_kept_request = functools.lru_cache(_KEPT, typed=True)(_request)


@public("nn.functional.interpolate", function=False, method=False, autocast=on(cuda=FullIf("mode", ("area",), False)))
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the dimensions after batch and channel, to a `size` or by a `scale_factor`."""
    given = input._array.shape, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    # What is kept is found by equality: 2.0 is no size, though it equals one, and inside of tuples types are not seen.
    usual = type(size) in _NUMBERS if scale_factor is None else size is None and type(scale_factor) in _NUMBERS
    usual = usual and _OPTIONS.issuperset((type(mode), type(align_corners), type(recompute_scale_factor)))
    op, *asked = (_kept_request if usual else _request)(*given)
    return op(input, *asked) if mode == "area" else _run(op, input, *asked)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=4
    )


@public("nn.functional.upsample", function=False, method=False)
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The older name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@public("nn.functional.upsample_nearest", function=False, method=False, autocast=on(cuda=FULL))
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by nearest neighbours, under an older name."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


@public("nn.functional.upsample_bilinear", function=False, method=False, autocast=on(cuda=FULL))
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "bilinear" and aligned corners, under an older name."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _filtered(mode: str) -> Any:
    @public(f"ops.aten._upsample_{mode}2d_aa", function=False, method=False, name=f"_upsample_{mode}2d_aa")
    def resize(
        input: Tensor,
        output_size: Any,
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        scale_factors: Any = None,
    ) -> Tensor:
        """Resizing with a filter as wide as the reduction."""
        shape = input._array.shape
        if len(shape) != 4:
            raise RuntimeError(f"It is expected input_size equals to 4, but got size {len(shape)}")
        if output_size is not None and (not isinstance(output_size, (tuple, list)) or len(output_size) != 2):
            raise RuntimeError(f"It is expected output_size equals to 2, but got size {output_size}")
        factors = scale_factors if scales_h is None else (scales_h, scales_w)
        counts = _sizes(shape[2:], output_size, factors)
        _check_sizes(shape, counts)
        return _run(_FILTERS[mode], input, counts, bool(align_corners), factors and tuple(factors))

    return resize


_upsample_bilinear2d_aa, _upsample_bicubic2d_aa, _upsample_lanczos2d_aa = map(_filtered, _FILTERS)
