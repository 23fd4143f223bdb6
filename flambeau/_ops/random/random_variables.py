"""Random numbers whose parameters are tensors, from methods that accept or reject: Poisson, binomial, gamma, Dirichlet.

The numbers come from `_core.random.rejection_sampling`. Counts have no derivative; gamma and Dirichlet numbers have
one, that of the sample at a fixed place in the unit interval, from `reparameterized`. All of it runs on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.quick import joint_shape
from ..._core.dtype import FLOAT, LEGACY_NAMES
from ..._core.generator import Generator, default_generator
from ..._core.random import rejection_sampling
from ..._core.tensor import Tensor
from ..._dispatch.arguments.precision import no_gradient
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.on_host import on_host
from ..._dispatch.public.registry import public
from . import reparameterized


def _source(generator: Generator | None) -> Generator:
    return default_generator if generator is None else generator


def _like_its_parameter(self: Array, generator: Any) -> Array:
    """The shape rule of numbers with a parameter each."""
    return np.empty_like(self, order="C")


def _joint(*arrays: Array) -> Array:
    """The shape rule of slopes: those of their arguments, broadcast."""
    return np.empty_like(arrays[0], order="C", shape=joint_shape(*[each.shape for each in arrays]))


# Counts ---------------------------------------------------------------------------------------------------------------


@primitive("PoissonBackward0", draws=True, shape=_like_its_parameter, self=no_gradient)
@on_host
def _poisson(self: Array, generator: Any) -> Array:
    return rejection_sampling.poisson(self, generator)


@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """For each rate in `input` a number of events, drawn from the Poisson distribution."""
    return _poisson(input, _source(generator))


@primitive(
    "NotImplemented",
    draws=True,
    shape=lambda count, prob, generator: np.empty_like(count, shape=joint_shape(count.shape, prob.shape)),
    count=no_derivative("binomial"),
    prob=no_derivative("binomial"),
)
@on_host
def _binomial(count: Array, prob: Array, generator: Any) -> Array:
    counts, chances = np.broadcast_arrays(count, prob)
    return rejection_sampling.binomial(counts, chances, generator)


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`."""
    for name, tensor in (("count", count), ("prob", prob)):
        if tensor.dtype.category != FLOAT:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {LEGACY_NAMES[tensor.dtype]}"
            )
    if prob.dtype is not count.dtype:
        raise RuntimeError(
            f"Found dtype {LEGACY_NAMES[prob.dtype]} but expected {LEGACY_NAMES[count.dtype]}: "
            "`count` and `prob` of binomial must have the same dtype"
        )
    return _binomial(count, prob, _source(generator))


# Gamma and Dirichlet --------------------------------------------------------------------------------------------------


def _refuse_second_derivative(grad: Tensor) -> Tensor:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


@primitive("StandardGammaGradBackward0", axes=ELEMENTS, shape=_joint, self=_refuse_second_derivative)
@on_host
def _gamma_slope(self: Array, output: Array) -> Array:
    return reparameterized.gamma_slope(self, output)


@public(method=False)
def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """How the gamma numbers `output` move with their shapes `input`."""
    _check_slopes("_standard_gamma_grad", input, output)
    return _gamma_slope(input, output)


@primitive(
    "StandardGammaBackward0",
    draws=True,
    shape=_like_its_parameter,
    self=lambda grad, self, result: grad * _gamma_slope(self, result),
)
@on_host
def _gamma(self: Array, generator: Any) -> Array:
    return rejection_sampling.gamma(self, generator)


@public(method=False)
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma distributed numbers of scale 1, for each shape in `input`."""
    return _gamma(input, _source(generator))


@primitive(
    "NotImplemented",
    draws=True,
    shape=_like_its_parameter,
    self=no_derivative("_sample_dirichlet"),
)
@on_host
def _dirichlet(self: Array, generator: Any) -> Array:
    return rejection_sampling.dirichlet(self, generator)


@public(method=False)
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Positive numbers that sum to 1 along the last dimension, of concentrations `input`."""
    return _dirichlet(input, _source(generator))


_NO_SECOND = no_derivative("_dirichlet_grad")


@primitive("NotImplemented", axes=ELEMENTS, shape=_joint, x=_NO_SECOND, alpha=_NO_SECOND, total=_NO_SECOND)
@on_host
def _beta_slope(x: Array, alpha: Array, total: Array) -> Array:
    return reparameterized.beta_slope(x, alpha, total)


@public(method=False)
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """How the Dirichlet numbers `x` move with their concentrations `alpha`, whose sum is `total`, over 1 - x."""
    _check_slopes("_dirichlet_grad", x, alpha, total)
    return _beta_slope(x, alpha, total)


def _check_slopes(name: str, *tensors: Tensor) -> None:
    first = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dtype is not first:
            raise RuntimeError(
                f"Found dtype {LEGACY_NAMES[tensor.dtype]} but expected {LEGACY_NAMES[first]}: "
                f"the tensors given to {name} must have the same dtype"
            )
    if first.category != FLOAT or first.itemsize < 4:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{LEGACY_NAMES[first]}'")
