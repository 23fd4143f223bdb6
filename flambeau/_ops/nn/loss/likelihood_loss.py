"""Negative log-likelihoods of numbers: normal and Poisson distributions."""

from __future__ import annotations

import math

import numpy as np

from ...._core.backend import read
from ...._core.reduction import REDUCTIONS
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL
from ...._dispatch.compiled_body import pointwise_at_any_size
from ...._dispatch.composite import composite
from ...._dispatch.host_read import check
from ...._dispatch.op import Array
from ...._dispatch.public.registry import public
from ...create.like import full_like
from .common import reduce_losses, reduction_number


@check("check_variance")
def _check_variance(var: Array) -> None:
    if read(np.any(var < 0)):
        raise ValueError("var has negative entry/entries")


def _variance(input: Tensor, var: Tensor | float) -> Tensor:
    """`var` in a shape that fits `input`."""
    if not isinstance(var, Tensor):
        if not isinstance(var, float):
            raise TypeError(f"gaussian_nll_loss(): var must be Tensor or float, not {type(var).__name__}")
        if var < 0:
            raise ValueError(f"var has negative entry/entries: {var}")
        return full_like(input, var)
    _check_variance(var)
    shape, given = input.shape, var.shape
    if given != shape:
        if given == shape[:-1]:
            var = var.unsqueeze(-1)
        else:
            differing = [size for size, wanted in zip(given, shape, strict=False) if size != wanted]
            if len(given) != len(shape) or differing != [1]:
                raise ValueError(
                    f"var is of incorrect size: {list(given)} for an input of shape {list(shape)}; it has that shape, "
                    "that shape with one dimension of 1, or that shape without the last dimension"
                )
    return var


def _check_text(reduction: object) -> None:
    """Refuse a reduction that is no text, of which PyTorch makes the message of its error."""
    if not isinstance(reduction, str):
        raise TypeError(f"reduction must be str, not {type(reduction).__name__}")


@public("nn.functional.gaussian_nll_loss", function=False, method=False)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor | float,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of normal distributions: `(log(var) + (input - target) ** 2 / var) / 2`."""
    _check_text(reduction)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid: reduction is one of 'none', 'mean', 'sum'")
    variance = _variance(input, var).clone()
    variance.detach().clamp_(min=eps)  # outside the graph: a variance below `eps` has the gradient of one at `eps`
    mean = input
    losses = 0.5 * (variance.log() + (mean - target) ** 2 / variance)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduce_losses(losses, reduction_number(reduction, None, None))


@pointwise_at_any_size
def _of_logarithms(rate: Array, count: Array) -> Array:
    return np.exp(rate) - count * rate


@pointwise_at_any_size
def _of_rates(rate: Array, count: Array, eps: float) -> Array:
    return rate - count * np.log(rate + eps)


def _poisson_kernel(rate: Array, count: Array, log_input: bool, eps: float) -> Array | None:
    if rate.shape != count.shape or rate.dtype != count.dtype or rate.dtype.char not in "fd":
        return None
    return _of_logarithms(rate, count) if log_input else _of_rates(rate, count, eps)


@composite("poisson_losses", _poisson_kernel)
def _poisson_losses(rate: Tensor, count: Tensor, log_input: bool, eps: float) -> Tensor:
    return rate.exp() - count * rate if log_input else rate - count * (rate + eps).log()


@public(method=False, autocast=FULL)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """The negative log-likelihood of Poisson distributions: `exp(input) - target * input`, for rates exp(input)."""
    losses = _poisson_losses(input, target, log_input, eps)
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduce_losses(losses, reduction)


@public("nn.functional.poisson_nll_loss", function=False, method=False, name="poisson_nll_loss", autocast=FULL)
def _functional_poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of Poisson distributions: `exp(input) - target * input`, for rates exp(input).

    `full` adds Stirling's approximation of log(target!) where the target is above 1.
    """
    _check_text(reduction)
    number = reduction_number(reduction, size_average, reduce)
    return poisson_nll_loss(input, target, log_input, full, eps, number)
