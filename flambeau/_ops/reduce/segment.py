"""Reductions of the segments of a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.arrays.lazy_signs import every_element
from ..._core.backend import as_array, read
from ..._core.dtype import FLOAT, INTEGER, LEGACY_NAMES
from ..._core.tensor import Tensor
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.public.registry import export, public
from ..shape.view import wrap_dim

_COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_NEUTRAL = {"sum": 0.0, "mean": np.nan, "prod": 1.0, "max": -np.inf, "min": np.inf}
"""What segments without elements give where there is no initial value."""


def _bounds(shape: tuple[int, ...], lengths: Array | None, offsets: Array | None, axis: int) -> tuple[Array, Array]:
    """Where each segment starts and ends, counted in rows of the data with the dimensions up to `axis` made one."""
    if offsets is not None:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        assert lengths is not None
        ends = np.cumsum(lengths, -1)
        starts = ends - lengths
    outer = np.arange(math.prod(shape[:axis]), like=ends).reshape(*shape[:axis], 1) * shape[axis]
    return (starts + outer).ravel(), (ends + outer).ravel()


def _rows(data: Array, axis: int) -> Array:
    return data.reshape(math.prod(data.shape[: axis + 1]), -1 if data.size else 0)


def _reduce_segments(rows: Array, starts: Array, ends: Array, combine: Any, fill: Any) -> Array:
    """`combine` over the rows of each segment; `fill` where there are none."""
    result = np.full((len(starts), rows.shape[1]), fill, rows.dtype, like=rows)
    present = ends > starts
    if read(present.any()) and rows.size:
        edges = np.stack([starts[present], ends[present]], 1).ravel()  # every other interval lies between segments
        if read(edges[-1]) == len(rows):
            edges = edges[:-1]
        result[present] = combine.reduceat(rows, edges, axis=0)[::2]
    return result


_SECOND = no_derivative("_segment_reduce_backward")


@primitive("NotImplemented", self=_SECOND, result=_SECOND, data=_SECOND)
@in_single
def _segment_backward(
    self: Array,
    result: Array,
    data: Array,
    reduce: str,
    lengths: Array | None,
    offsets: Array | None,
    axis: int,
    initial: Any,
) -> Array:
    starts, ends = _bounds(data.shape, lengths, offsets, axis)
    counts = (ends - starts).astype(np.intp, copy=False)
    segment = np.repeat(np.arange(len(counts), like=self), counts)
    places = np.arange(len(segment), like=self) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    rows, results = _rows(data, axis), _rows(result, axis)
    values, slopes = rows[places], _rows(self, axis)[segment]
    if reduce == "mean":
        slopes = slopes / counts[segment, None].astype(data.dtype)
    elif reduce in ("max", "min"):
        chosen = (values == results[segment]) | np.isnan(values)
        slopes = np.where(chosen, slopes / np.maximum(_totals(chosen, counts), 1)[segment], 0)
    elif reduce == "prod":
        special = (values == 0) | np.isnan(values)
        ordinary = np.ones_like(rows)
        ordinary[places] = np.where(special, 1, values)
        others = _reduce_segments(ordinary, starts, ends, np.multiply, 1) * (1 if initial is None else initial)
        alone = _totals(special, counts)[segment] == 1
        with_itself = results[segment] / np.where(special, 1, values)
        slopes = slopes * np.where(special & alone, others[segment], with_itself)
    gradient = np.zeros_like(rows)
    gradient[places] = slopes
    return gradient.reshape(data.shape)


def _totals(chosen: Array, counts: Array) -> Array:
    """How many of the elements of each segment are chosen."""
    ends = np.cumsum(counts)
    sums = np.concatenate([np.zeros((1, chosen.shape[1]), np.int64, like=chosen), np.cumsum(chosen, 0)])
    return as_array(sums[ends] - sums[ends - counts])


def _gradient(
    grad: Tensor, data: Any, result: Tensor, reduce: str, lengths: Any, offsets: Any, axis: int, initial: Any
) -> Tensor:
    return _segment_backward(grad, result, data, reduce, lengths, offsets, axis, initial)


def _shape(data: Array, reduce: str, lengths: Array | None, offsets: Array | None, axis: int, initial: Any) -> Array:
    ends: Any = offsets if lengths is None else lengths
    count = ends.shape[axis] - (lengths is None)
    return np.empty_like(data, shape=(*data.shape[:axis], count, *data.shape[axis + 1 :]))


@primitive("SegmentReduceBackward0", data=_gradient, shape=_shape)
@in_single
def _segment_reduce(
    data: Array, reduce: str, lengths: Array | None, offsets: Array | None, axis: int, initial: Any
) -> Array:
    starts, ends = _bounds(data.shape, lengths, offsets, axis)
    combine = _COMBINE[reduce]
    start = _NEUTRAL[reduce] if initial is None else initial
    result = _reduce_segments(_rows(data, axis), starts, ends, combine, start)
    present = ends > starts
    if initial is not None:
        result[present] = combine(result[present], data.dtype.type(initial))
    if reduce == "mean":
        result[present] /= (ends - starts)[present, None].astype(data.dtype)
    return result.reshape(*data.shape[:axis], -1 if len(starts) else 0, *data.shape[axis + 1 :])


def _check_segments(data: Tensor, name: str, segments: Tensor, axis: int) -> None:
    if segments._kind.dtype.category != INTEGER:
        kernel = f"_segment_reduce_{name}_cpu_kernel1"
        raise NotImplementedError(f'"{kernel}" not implemented for {LEGACY_NAMES[segments.dtype]!r}')
    if data.dim() < segments.dim():
        raise RuntimeError(
            f"segment_reduce(): Expected data.dim() >= {name}.dim(), got {data.dim()} and {segments.dim()}"
        )
    if segments.dim() != axis + 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")


def _check_lengths(data: Tensor, lengths: Tensor, axis: int) -> None:
    if not lengths._array.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument: segment_reduce() was given no lengths"
        )
    if lengths._kind.dataless:
        return
    if read(np.any(every_element(lengths) < 0)):
        raise RuntimeError("lengths contains negative value!")
    if read(np.any(every_element(lengths).sum(-1) != data.shape[axis])):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            f"!unsafe: to {data.shape[axis]}."
        )


def _check_offsets(data: Tensor, offsets: Tensor, axis: int) -> None:
    if not offsets._array.shape[-1]:
        raise RuntimeError("Trying to create tensor with negative dimension -1: segment_reduce() was given no offsets")
    if offsets._kind.dataless:
        return
    array, size = every_element(offsets), data.shape[axis]
    if read(np.any(np.diff(array) < 0)) or read(np.any(array < 0)) or read(np.any(array > size)):
        raise RuntimeError(
            "Expected segment_length >= 0 to be true, but got false: the offsets of segment_reduce rise, from 0 to at "
            f"most {size}."
        )


@public(method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """`data` along `axis`, cut into segments by their lengths or by the offsets between them, each reduced to one.

    `reduce` is "sum", "mean", "prod", "max" or "min". Segments without elements give `initial`, which also takes
    part in the others.
    """
    axis = wrap_dim(axis, data.dim())
    if reduce not in _COMBINE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, max or min, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    segments = lengths if offsets is None else offsets
    if segments is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    _check_segments(data, "lengths" if offsets is None else "offsets", segments, axis)
    if offsets is not None:
        _check_offsets(data, offsets, axis)
    elif not unsafe:
        _check_lengths(data, segments, axis)
    if data._kind.dtype.category != FLOAT:
        raise NotImplementedError(f'"_segment_reduce_cpu" not implemented for {LEGACY_NAMES[data.dtype]!r}')
    start = initial.item() if isinstance(initial, Tensor) else initial
    return _segment_reduce(data, reduce, lengths, offsets, axis, start)


export(segment_reduce, "_segment_reduce")  # the same function, under the name of its operator
