"""Reductions, scans and normalizations of the elements that a mask selects: the functions of `flambeau.masked`.

Elements that are masked out are replaced by what does not change the result (0 for a sum, -inf for a maximum, ...), in
the dtype of the input; then the ordinary op runs. `mask` is true where an element counts, and broadcasts to the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._core.dtype import BOOL, COMPLEX, FLOAT, INTEGER, LEGACY_NAMES, bool_, dtype, float32, iinfo, int64
from ..._core.tensor import Tensor
from ..._dispatch.public.protocol import Body
from ..._dispatch.public.registry import public
from ..create.constants import ones
from ..index.masked import where
from ..pointwise.binary_math import logaddexp
from ..shape.view import wrap_dim
from .norm import vector_norm
from .softmax import log_softmax, softmax

Dim = int | tuple[int, ...] | list[int] | None


def _publish(name: str) -> Callable[[Body], Body]:
    return public(f"masked.{name}", function=False, method=False, name=name)


def _dims(input: Tensor, dim: Dim) -> tuple[int, ...]:
    """The dimensions to reduce: none given means all of them."""
    if isinstance(dim, int):
        return (wrap_dim(int(dim), input.ndim),)
    dims = () if dim is None else tuple(dim)
    if not dims:
        return tuple(range(input.ndim))
    return tuple([wrap_dim(int(each), input.ndim) if isinstance(each, int) else each for each in dims])


def _one_dim(input: Tensor, dim: Dim) -> int:
    """The dimension of an op that works along one: of several, the first."""
    dims = _dims(input, dim)
    for each in dims:
        if dims.count(each) > 1:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims: {dims}")
    return dims[0] if dims else 0


def _mask_of(input: Tensor, mask: Tensor) -> Tensor:
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): "
            f"mask has shape {list(mask.shape)}, input has {list(input.shape)}"
        )
    return mask.expand(input.shape).bool()


def _filled(input: Tensor, mask: Tensor | None, value: Callable[[dtype], Any]) -> Tensor:
    """`input` with `value` of its dtype where the mask is false."""
    if mask is None:
        return input
    return where(_mask_of(input, mask), input, value(input.dtype))


def _lowest(name: str) -> Callable[[dtype], Any]:
    return lambda kind: _extreme(name, kind, -math.inf)


def _highest(name: str) -> Callable[[dtype], Any]:
    return lambda kind: _extreme(name, kind, math.inf)


def _extreme(name: str, kind: dtype, infinity: float) -> Any:
    if kind.category == BOOL:
        raise NotImplementedError(f"identity of {name} on {kind} input")
    if kind.category == COMPLEX:
        raise TypeError(f"{name}: complex numbers have no order, so that masked elements cannot be left out of it")
    if kind.category == INTEGER:
        return iinfo(kind).min if infinity < 0 else iinfo(kind).max
    return infinity


def _zero(kind: dtype) -> Any:
    return 0


def _one(kind: dtype) -> Any:
    return 1


def _wide(kind: dtype) -> dtype:
    """The dtype of sums and products: small integers are added up in int64."""
    return int64 if kind.category < FLOAT else kind


_OF_INPUT_SHAPE = frozenset(("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"))
_REDUCTIONS = frozenset(
    ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp")
)


def input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """Which elements of `input` a masked op, called with these arguments, selects."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return _mask_of(input, mask)


def output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Which elements of `op(input, ...)` come from a selected element."""
    name = getattr(op, "__name__", str(op))
    if name not in _OF_INPUT_SHAPE | _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {name})")
    mask = input_mask(input, *args, **kwargs)
    if name in _OF_INPUT_SHAPE:
        return mask
    position = 1 if name == "norm" else 0  # after the order
    dim = args[position] if len(args) > position else kwargs.get("dim")
    return mask.any(_dims(input, dim), bool(kwargs.get("keepdim", False)))


# ----- reductions -------------------------------------------------------------------------------------------------


@_publish("sum")
def masked_sum(
    input: Tensor, dim: Dim = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Sum of the selected elements; 0 where none is."""
    chosen = _filled(input, mask, _zero)
    return chosen.sum(_dims(input, dim), bool(keepdim), dtype=dtype or _wide(input.dtype))


@_publish("prod")
def masked_prod(
    input: Tensor, dim: Dim = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Product of the selected elements; 1 where none is."""
    result = _filled(input, mask, _one)
    dims = _dims(input, dim)
    _one_dim(input, dims)
    kind = dtype or _wide(input.dtype)
    for each in sorted(dims, reverse=True):
        result = result.prod(each, bool(keepdim), dtype=kind)
    return result.to(kind)


def _extreme_of(name: str, doc: str, identity: Callable[[dtype], Any]) -> Callable[..., Tensor]:
    """A function of the largest or smallest selected elements; the others become `identity`."""

    def extreme(
        input: Tensor, dim: Dim = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        found: Tensor = getattr(_filled(input, mask, identity), name)(_dims(input, dim), bool(keepdim))
        return found.to(dtype or input.dtype)

    extreme.__doc__ = doc
    return _publish(name)(extreme)


def _place_of(name: str, doc: str, identity: Callable[[dtype], Any]) -> Callable[..., Tensor]:
    """A function of the position of an extreme; elements that are not selected become `identity`."""

    def place(
        input: Tensor,
        dim: int | None = None,
        *,
        keepdim: bool | None = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        found: Tensor = getattr(_filled(input, mask, identity), name)(dim, bool(keepdim))
        return found.to(dtype or input.dtype)

    place.__doc__ = doc
    return _publish(name)(place)


masked_amax = _extreme_of("amax", "The largest selected element.", _lowest("amax"))
masked_amin = _extreme_of("amin", "The smallest selected element.", _highest("amin"))
masked_argmax = _place_of(
    "argmax", "Where the largest selected element is, as a number of the input's dtype.", _lowest("argmax")
)
masked_argmin = _place_of(
    "argmin", "Where the smallest selected element is, as a number of the input's dtype.", _highest("argmin")
)


def _count(input: Tensor, dim: Dim, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements are selected."""
    each = ones(input.shape, dtype=int64, device=input._kind.device) if mask is None else _mask_of(input, mask)
    return each.sum(_dims(input, dim), keepdim, dtype=int64)


@_publish("mean")
def masked_mean(
    input: Tensor, dim: Dim = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Mean of the selected elements; NaN where none is."""
    kind = dtype or input.dtype
    if kind.category < FLOAT:
        origin = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {origin} dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    total = masked_sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dim, bool(keepdim), mask)


@_publish("median")
def masked_median(
    input: Tensor, dim: Dim = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of the selected elements along one dimension; NaN where none is."""
    along = _one_dim(input, dim)
    if input.is_floating_point():
        found: Tensor = _filled(input, mask, lambda kind: math.nan).nanmedian(along, keepdim).values
        return found
    if mask is not None and not bool(_mask_of(input, mask).any(along).all()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    chosen = _filled(input.to(float32), mask, lambda kind: math.nan)
    median: Tensor = chosen.nanmedian(along, keepdim).values
    return median.to(dtype or input.dtype)


@_publish("norm")
def masked_norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dim = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the selected elements; 0 where none is, or inf for the smallest absolute value."""
    smallest = ord == -math.inf
    if smallest and mask is not None and not input.is_floating_point():
        raise AssertionError(f"input must be floating point, got {input.dtype}: norm of order -inf with a mask")
    chosen = _filled(input, mask, lambda kind: math.inf if smallest else 0)
    return vector_norm(chosen, ord, _dims(input, dim), bool(keepdim), dtype=dtype)


@_publish("var")
def masked_var(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Variance of the selected elements."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    taken = correction if correction is not None else int(unbiased is not False)
    if input.dtype is bool_:
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported: var of a bool tensor.")
    kind = dtype or (input.dtype if input.dtype.category >= FLOAT else float32)
    computed = kind if kind.category >= FLOAT else float32
    total = masked_sum(input, dim, keepdim=True, dtype=dtype, mask=mask)
    rest = input - total / _count(input, dim, True, mask)
    square = rest * (rest.conj() if rest.is_complex() else rest)
    spread = masked_sum(square, dim, keepdim=keepdim, dtype=computed, mask=mask)
    count = _count(input, dim, bool(keepdim), mask)
    return (spread / (count - taken).clamp(min=0)).to(kind)


@_publish("std")
def masked_std(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Standard deviation of the selected elements."""
    return masked_var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


@_publish("logsumexp")
def masked_logsumexp(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """log of the sum of exp of the selected elements; -inf where none is."""
    if not isinstance(keepdim, bool):
        raise TypeError(f"logsumexp(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")
    chosen = _filled(input, mask, lambda kind: -math.inf if kind.is_complex else _extreme("logsumexp", kind, -math.inf))
    return chosen.logsumexp(_dims(input, dim), keepdim).to(dtype or input.dtype)


# ----- results of the input's shape -------------------------------------------------------------------------------


def _refuse_bool(name: str, kind: dtype) -> None:
    if kind is bool_:
        raise NotImplementedError(f'"{name}_out_cpu" not implemented for {LEGACY_NAMES[kind]!r}')


@_publish("cumsum")
def masked_cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Cumulative sums of the selected elements, in the input's dtype."""
    kind = dtype or input.dtype
    _refuse_bool("cumsum", kind)
    return _filled(input, mask, _zero).cumsum(_one_dim(input, dim), dtype=kind)


@_publish("cumprod")
def masked_cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Cumulative products of the selected elements, in the input's dtype."""
    kind = dtype or input.dtype
    _refuse_bool("cumprod", kind)
    return _filled(input, mask, _one).cumprod(_one_dim(input, dim), dtype=kind)


@_publish("softmax")
def masked_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax over the selected elements; 0 at the others."""
    return softmax(_filled(input, mask, _lowest("amax")), _one_dim(input, dim), dtype)


@_publish("log_softmax")
def masked_log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the softmax over the selected elements; -inf at the others."""
    return log_softmax(_filled(input, mask, _lowest("amax")), _one_dim(input, dim), dtype)


@_publish("softmin")
def masked_softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negated selected elements; 0 at the others."""
    return softmax(-_filled(input, mask, _highest("amin")), _one_dim(input, dim), dtype)


@_publish("normalize")
def masked_normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The selected elements over their vector norm, or over `eps` if that is larger; 0 at the others."""
    size = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, _zero) / size.maximum(size.new_full((), eps))


@_publish("logaddexp")
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), without what is masked out; -inf where both are."""
    left = _filled(input, input_mask, lambda kind: -math.inf)
    right = _filled(other, other_mask, lambda kind: -math.inf)
    return logaddexp(left, right).to(dtype or input.dtype)
