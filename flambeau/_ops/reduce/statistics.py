"""Quantiles, histograms, counts, covariance."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ..._core.arrays.lazy_signs import every_element
from ..._core.arrays.quick import broadcast
from ..._core.backend import read
from ..._core.dtype import COMPLEX, FLOAT, INTEGER, LEGACY_NAMES, bool_, float32, float64
from ..._core.tensor import Tensor
from ..._dispatch.abstract.meta import shape_in_elements
from ..._dispatch.arguments.autocast_rules import FULL, lower_result, on
from ..._dispatch.arguments.promotion import Number
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.one_by_one import one_by_one
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..pointwise.binary import conj
from ..pointwise.ternary import _lerp_tensor
from ..shape.view import wrap_dim
from .reductions import no_kernel
from .sort import sort, taken

HISTOGRAM = return_type("histogram", ("hist", "bin_edges"))

# ----- quantiles --------------------------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _levels(name: str, input: Tensor, q: Any, interpolation: str) -> Tensor:
    """`q` as a tensor, after all that can be wrong with the arguments."""
    if input._array.size == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty: it has shape {list(input._array.shape)}")
    if input._kind.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, not {input.dtype}")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor) and not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    levels: Tensor = q if isinstance(q, Tensor) else input.new_tensor(q)
    if levels.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor: it has shape {list(levels.shape)}")
    if levels.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor: {levels.dtype}, {input.dtype}")
    if isinstance(q, Tensor) and not q._kind.dataless and not bool((q >= 0).logical_and(q <= 1).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return levels


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Tensor:
    levels = _levels(name, input, q, interpolation)
    ndim = input._array.ndim
    place = None if dim is None else wrap_dim(dim, ndim)
    if place is None or ndim == 0:
        lines = input.reshape((*[1] * (ndim if keepdim else 0), -1))
    elif keepdim:
        lines = input.unsqueeze(-1).transpose(place, -1)
    else:
        lines = input.movedim(place, -1)
    found = _at_levels(lines, levels.reshape(-1), interpolation, ignore_nan)
    if levels.ndim:
        found.unsqueeze_(0).transpose_(0, -1)
    return found.squeeze_(-1)  # in place: the result is no view, as in PyTorch


def _at_levels_on_arrays(lines: Any, levels: Any, interpolation: str, ignore_nan: bool) -> Any:
    """The kernel of `_at_levels`."""
    if type(lines) is not np.ndarray:
        return None
    ordered = np.sort(lines, -1, "stable")
    last = ordered.shape[-1] - 1
    ranks = broadcast(levels * levels.dtype.type(last), (*lines.shape[:-1], levels.size))
    if np.isnan(ordered[..., -1]).any():
        missing = np.isnan(ordered).sum(-1, keepdims=True)
        if ignore_nan:
            ranks = levels * np.maximum(last - missing, 0).astype(levels.dtype)
        else:
            ranks = np.where(missing > 0, levels.dtype.type(last), ranks)
    rounding = _ROUNDINGS.get(interpolation)
    if rounding is not None:
        return taken(ordered, rounding(ranks).astype(np.int64), lines.ndim - 1)
    below = np.floor(ranks)
    left, right = [taken(ordered, each.astype(np.int64), lines.ndim - 1) for each in (below, np.ceil(ranks))]
    weight = ranks - below if interpolation == "linear" else np.full_like(left, 0.5)
    return _lerp_tensor.kernel(left, right, weight)


_ROUNDINGS: dict[str, Any] = {"nearest": np.rint, "lower": np.floor, "higher": np.ceil}


@composite("at_levels", kernel=_at_levels_on_arrays)
def _at_levels(lines: Tensor, levels: Tensor, interpolation: str, ignore_nan: bool) -> Tensor:
    """The quantiles of the last dimension."""
    ordered = sort(lines, -1)[0]
    size = ordered.shape[-1]
    missing = ordered.isnan().sum(-1, keepdim=True)
    if ignore_nan:
        ranks = levels * (size - 1 - missing).clamp(min=0).to(lines.dtype)
    else:
        ranks = (levels * (size - 1)).expand((*ordered.shape[:-1], levels.numel()))
        ranks = ranks.masked_fill(missing > 0, float(size - 1))
    return _between(ordered, ranks, interpolation)


def _between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """What lies at the fractional `ranks` of sorted lines."""
    if interpolation == "nearest":
        ranks = ranks.round()
    elif interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    below = ranks.floor()
    left = ordered.gather(-1, below.long())
    if interpolation not in ("linear", "midpoint"):
        return left
    right = ordered.gather(-1, ranks.ceil().long())
    weight = ranks - below if interpolation == "linear" else ranks.new_full(ranks.shape, 0.5)
    return left.lerp(right, weight)


@public(autocast=on(cpu=FULL))
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Tensor:
    """The `q`-quantiles of the elements, of all or along `dim`."""
    return store_exactly(_quantile("quantile", input, q, dim, keepdim, interpolation, False), out)


@public(autocast=on(cpu=FULL))
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Tensor:
    """The `q`-quantiles of the elements that are not NaN."""
    return store_exactly(_quantile("nanquantile", input, q, dim, keepdim, interpolation, True), out)


# ----- counts -----------------------------------------------------------------------------------------------------


@primitive("NotImplemented", weights=no_derivative("bincount"), shape=shape_in_elements("bincount"))
def _bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    if weights is None:
        return np.bincount(self, minlength=minlength).astype(np.int64)
    counted = np.bincount(self, weights=weights, minlength=minlength)
    return counted.astype(weights.dtype if weights.dtype == np.float32 else np.float64)


@public()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, 2, ... occurs."""
    if weights is not None and not isinstance(weights, Tensor):
        raise TypeError(f"bincount(): argument 'weights' (position 2) must be Tensor, not {type(weights).__name__}")
    if input._kind.dtype.category != INTEGER:
        raise no_kernel("bincount_cpu", input)
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if input._array.ndim != 1 or (
        input._array.size and not input._kind.dataless and read(every_element(input).min() < 0)
    ):
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs: got {input.dtype} of shape {list(input.shape)}"
        )
    if weights is not None and weights._array.shape != input._array.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input: {list(weights.shape)}, {list(input.shape)}"
        )
    return _bincount(input, weights, minlength)


def _data_range(input: Tensor) -> tuple[float, float]:
    if not input._array.size:
        return 0.0, 1.0
    found = input.detach()
    return float(found.amin()), float(found.amax())


def _checked_range(name: str, low: float, high: float, margin: float) -> tuple[float, float]:
    """The bounds of a histogram, moved apart where they are equal."""
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min: got [{low}, {high}]")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite")
    return (low - margin, high + margin) if low == high else (low, high)


@primitive(None, shape=lambda self, bins, low, high: np.empty_like(self, shape=bins))
def _histc(self: Array, bins: int, low: float, high: float) -> Array:
    flat = self.reshape(-1)
    start, end = np.asarray(low, self.dtype), np.asarray(high, self.dtype)
    inside = flat[(flat >= start) & (flat <= end)]
    # In the precision of the data: an element near an edge falls where PyTorch's arithmetic puts it.
    divide = np.floor_divide if self.dtype.kind in "iu" else np.true_divide
    places = divide((inside - start) * np.asarray(bins, self.dtype), end - start).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(self.dtype)


def _counts_integers(input: Tensor) -> bool:
    """Whether `histc` takes the integers of a tensor: PyTorch's CUDA kernel does; models with experts rely on it."""
    return input.is_cuda and not input.is_complex() and input._kind.dtype is not bool_


@public()
@one_by_one("input")
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0, *, out: Any = None) -> Tensor:
    """How many elements fall into each of `bins` equal parts of the range; equal bounds mean the data's own."""
    if not input._kind.dtype.is_floating_point and not _counts_integers(input):
        raise no_kernel("histogram_cpu", input)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0 of histc")
    given = (float(min), float(max))
    if input._kind.dataless:
        return store_exactly(_histc(input, bins, *given), out)
    low, high = _checked_range("torch.histc", *(given if min != max else _data_range(input)), 1)
    return store_exactly(_histc(input, bins, low, high), out)


def _bins_of(elements: Array, edges: Array) -> Array:
    """The number of the bin of each element, all of which are between the first edge and the last."""
    count = len(edges) - 1
    width = (edges[-1] - edges[0]) / count
    if type(edges) is np.ndarray and width > 0 and np.abs(np.diff(edges) / width - 1).max() * count < _NEARLY_EVEN:
        # Division finds the bin or its neighbour, and the edges tell which: no search.
        guess = np.clip(((elements - edges[0]) / width).astype(np.int64), 0, count - 1)
        guess -= elements < edges[guess]
        guess += elements >= edges[guess + 1]
        return np.clip(guess, 0, count - 1)
    return np.minimum(np.searchsorted(edges, elements, "right") - 1, count - 1)


_NEARLY_EVEN = 0.25
"""Edges that deviate from even ones by less than this part of a bin in all."""


def _histogram_shapes(self: Array, edges: Array, weight: Array | None, density: bool) -> Any:
    return np.empty_like(self, shape=len(edges) - 1), edges


@several(
    "NotImplemented",
    self=no_derivative("histogram"),
    edges=no_derivative("histogram"),
    weight=no_derivative("histogram"),
    shape=_histogram_shapes,
)
def _histogram(self: Array, edges: Array, weight: Array | None, density: bool) -> Any:
    flat = self.reshape(-1)
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    places = _bins_of(flat[inside], edges)
    weights = None if weight is None else weight.reshape(-1)[inside]
    counts = np.bincount(places, weights, len(edges) - 1).astype(self.dtype)
    return counts / counts.sum() / np.diff(edges) if density else counts, np.array(edges, like=edges)


def edges_between(low: Tensor, high: Tensor, bins: int) -> Tensor:
    """The edges of bins of one size, by ops: for programs that are written down of tensors without data."""
    margin = (low == high) * 0.5
    steps = (low.new_ones(bins + 1).cumsum(0) - 1) / bins
    return (low - margin) * (1 - steps) + (high + margin) * steps  # the ends are not rounded


@public()
@one_by_one("input", "bins", "weight")
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """How many elements fall between neighbours of the bin edges, and the edges; `bins` is their number or they."""
    if input._kind.dtype not in (float32, float64):
        raise no_kernel("histogram_cpu", input)
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.numel() == 0:
            raise RuntimeError(f"histogram(): bins must be a 1D tensor with at least one edge, got {list(bins.shape)}")
        if bins.dtype is not input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{input.dtype} and bins for dimension 0 with dtype {bins.dtype}"
            )
        edges: Tensor = bins
    else:
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, got {bins}")
        if input._kind.dataless and range is None:
            edges = edges_between(input.amin(), input.amax(), bins)
        else:
            start, end = _data_range(input) if range is None else range
            low, high = _checked_range("torch.histogram", float(start), float(end), 0.5)
            edges = input.new_tensor(np.linspace(low, high, bins + 1))
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            "histogram(): if weight tensor is provided it should have the same shape as the input tensor: "
            f"they have {list(weight.shape)} and {list(input.shape)}"
        )
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({input.dtype}), and weight({weight.dtype})"
        )
    return store_exactly(named(HISTOGRAM, _histogram(input, edges, weight, density)), out)


# ----- covariance -------------------------------------------------------------------------------------------------


def _weights(name: str, weights: Tensor, count: int, category: int, words: str) -> Tensor:
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if weights._kind.dtype.category != category:
        given = LEGACY_NAMES[weights.dtype]
        raise RuntimeError(f"cov(): expected {name} to have {words} dtype but got {name} with {given} dtype")
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if count and not weights._kind.dataless and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights


@public(autocast=on(cpu=lower_result))
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of the variables in the rows of `input`, whose columns are observations."""
    if input._array.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input._kind.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    table = input.reshape((1, -1)) if input._array.ndim < 2 else input
    count = table.shape[1]
    weights: Tensor | None = None
    free: Any
    if fweights is not None:
        weights = _weights("fweights", fweights, count, INTEGER, "integral")
    if aweights is not None:
        own = _weights("aweights", aweights, count, FLOAT, "floating point")
        weights = own if weights is None else weights * own
    total: Any = count if weights is None else weights.sum()
    if weights is not None and not input._kind.dataless and float(total) == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (table if weights is None else table * weights).sum(1) / total
    if weights is None or aweights is None:
        free = total - correction
    elif correction:
        free = total - correction * (weights * aweights).sum() / total
    else:
        free = total
    if not input._kind.dataless and float(free) <= 0:
        warnings.warn("cov(): degrees of freedom is <= 0", UserWarning, stacklevel=3)
        free = free * 0
    apart = table - mean.unsqueeze(1)
    weighted = apart if weights is None else apart * weights
    covariance: Tensor = apart.matmul(conj(weighted.transpose(0, 1))) / free
    return covariance.squeeze()


@public(autocast=on(cpu=lower_result))
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the variables in the rows of `input`."""
    if input._array.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    variances = covariance.diagonal()
    deviation = (variances.real if covariance._kind.dtype.is_complex else variances).sqrt()
    scaled = covariance / deviation.reshape((-1, 1)) / deviation.reshape((1, -1))
    if scaled._kind.dtype.category != COMPLEX:
        return scaled.clamp(-1, 1)
    from ..pointwise.complex_make import complex_

    return complex_(scaled.real.clamp(-1, 1), scaled.imag.clamp(-1, 1))
