"""The Kullback-Leibler divergences that can be computed exactly.

Most of them are -H(p) - E_p[log q(x)], and the expectation needs only a few moments of p. So there is one formula for
each kind of q, and the classes of p that know these moments are listed beside it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor

from ._functions import softplus, solve_lower
from ._matrices import log_det_of_tril
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import Formula, kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, lowrank_log_det
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant


def _registered(types_p: list[type[Distribution]], type_q: type[Distribution]) -> Callable[[Formula], Formula]:
    def decorate(formula: Formula) -> Formula:
        for type_p in types_p:
            register_kl(type_p, type_q)(formula)
        return formula

    return decorate


# Where p has values that q excludes -----------------------------------------------------------------------------------


def _infinite(p: Any, q: Any) -> Tensor:
    return flambeau.full_like(getattr(p, next(iter(p.arg_constraints))), math.inf)


_EXCLUDED: dict[type[Distribution], list[type[Distribution]]] = {
    Beta: [Pareto],
    ContinuousBernoulli: [Pareto],
    Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Pareto: [Beta, ContinuousBernoulli, Uniform],
    Poisson: [Bernoulli, Binomial],
}
for _type_p, _types_q in _EXCLUDED.items():
    for _type_q in _types_q:
        register_kl(_type_p, _type_q)(_infinite)


def _bounds(p: Any) -> tuple[Any, Any]:
    """The ends of the support of a distribution of numbers."""
    support = p.support
    return getattr(support, "lower_bound", -math.inf), getattr(support, "upper_bound", math.inf)


def _if_finite(kl: Callable[..., Tensor], *moments: Tensor) -> Tensor:
    """`kl` of moments of p, but infinite, with zero gradient, where one of them is."""
    infinite = [moment.isinf() for moment in moments]
    result = kl(*(moment.masked_fill(mask, 0) for moment, mask in zip(moments, infinite, strict=True)))
    return result.masked_fill(functools.reduce(operator.or_, infinite), math.inf)


def _if_inside(kl: Tensor, p: Any, q: Any) -> Tensor:
    """`kl`, but infinite where the support of p is not within that of q."""
    (low_p, high_p), (low_q, high_q) = _bounds(p), _bounds(q)
    outside = flambeau.as_tensor(low_p < low_q) | flambeau.as_tensor(high_p > high_q)
    return kl.masked_fill(outside, math.inf)


# Moments of p ---------------------------------------------------------------------------------------------------------


def _mean_log(p: Any) -> Tensor:
    """E[log x]."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    assert isinstance(p, Uniform)
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """The mean of the logarithm over an interval."""
    return (flambeau.xlogy(high, high) - flambeau.xlogy(low, low)) / (high - low) - 1


def _log_mean_exp(p: Any, t: Tensor) -> Tensor:
    """log E[exp(-t x)]."""
    if isinstance(p, Exponential):
        return -(t / p.rate).log1p()
    if isinstance(p, Gamma):
        return -p.concentration * (t / p.rate).log1p()
    if isinstance(p, Gumbel):
        return (1 + t * p.scale).lgamma() - t * p.loc
    if isinstance(p, Normal):
        return 0.5 * (t * p.scale).pow(2) - t * p.loc
    assert isinstance(p, Uniform)
    width = t * (p.high - p.low)
    return (-(-width).expm1() / width).log() - t * p.low


# One formula for each q -----------------------------------------------------------------------------------------------


@_registered([Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform], Normal)
def _kl_to_normal(p: Any, q: Normal) -> Tensor:
    def kl(mean: Tensor, variance: Tensor) -> Tensor:
        entropy: Tensor = p.entropy()
        deviation = (variance + (mean - q.loc).pow(2)) / q.variance
        return 0.5 * (deviation + (2 * math.pi * q.variance).log()) - entropy

    return _if_finite(kl, p.mean, p.variance)


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    near = math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp()
    distance = p.scale * (near + z * flambeau.erf(z / math.sqrt(2)))
    return distance / q.scale + (2 * q.scale).log() - p.entropy()


@_registered([Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], Exponential)
def _kl_to_exponential(p: Any, q: Exponential) -> Tensor:
    return _if_inside(_if_finite(lambda mean: q.rate * mean - q.rate.log() - p.entropy(), p.mean), p, q)


@_registered([Beta, Exponential, Gamma, Pareto, Uniform], Gamma)
def _kl_to_gamma(p: Any, q: Gamma) -> Tensor:
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    others = normalizer - (q.concentration - 1) * _mean_log(p) - p.entropy()
    return _if_inside(_if_finite(lambda mean: q.rate * mean + others, p.mean), p, q)


@_registered([Exponential, Gamma, Gumbel, Normal, Uniform], Gumbel)
def _kl_to_gumbel(p: Any, q: Gumbel) -> Tensor:
    tail = (_log_mean_exp(p, q.scale.reciprocal()) + q.loc / q.scale).exp()
    distance: Tensor = p.mean - q.loc
    entropy: Tensor = p.entropy()
    return distance / q.scale + tail + q.scale.log() - entropy


@_registered([Pareto, Uniform], Pareto)
def _kl_to_pareto(p: Any, q: Pareto) -> Tensor:
    normalizer = q.alpha.log() + q.alpha * q.scale.log()
    return _if_inside((q.alpha + 1) * _mean_log(p) - normalizer - p.entropy(), p, q)


@_registered([Beta, ContinuousBernoulli, Uniform], Uniform)
def _kl_to_uniform(p: Any, q: Uniform) -> Tensor:
    return _if_inside((q.high - q.low).log() - p.entropy(), p, q)


@_registered([Beta, ContinuousBernoulli, Uniform], ContinuousBernoulli)
def _kl_to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    normalizer = q._cont_bern_log_norm() + (-q.probs).log1p()
    return _if_inside(-p.mean * q.logits - normalizer - p.entropy(), p, q)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    expected = (a - 1) * _mean_log(p) + (b - 1) * _mean_log_between(1 - p.high, 1 - p.low)
    return _if_inside(log_beta - expected - p.entropy(), p, q)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    mean_log = p.concentration.digamma() - p.concentration.sum(-1, True).digamma()
    difference = ((p.concentration - q.concentration) * mean_log).sum(-1)
    return q._log_normalizer(q.concentration) - p._log_normalizer(p.concentration) + difference


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    overlap = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return overlap.log() - (4 * p.scale * q.scale).log()


# Counts and choices ---------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return _share(ones, p.probs == 0, q.probs == 0) + _share(zeros, p.probs == 1, q.probs == 1)


def _share(term: Tensor, never_p: Tensor, never_q: Tensor) -> Tensor:
    """What one outcome adds: infinite if impossible under q, nothing if impossible under p."""
    return term.masked_fill(never_q, math.inf).masked_fill(never_p, 0)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    return _share(p.probs * (p.logits - q.logits), p.probs == 0, q.probs == 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented: it has no closed form"
        )
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * trial).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


# Normal vectors -------------------------------------------------------------------------------------------------------


def _log_det(p: Any) -> Tensor:
    """The logarithm of the determinant of the covariance matrix."""
    if isinstance(p, LowRankMultivariateNormal):
        return lowrank_log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    return 2 * log_det_of_tril(p._unbroadcasted_scale_tril)


def _roots(p: Any) -> list[Tensor]:
    """Matrices R with covariance matrix = the sum of all R R^T."""
    if isinstance(p, LowRankMultivariateNormal):
        return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]
    return [p._unbroadcasted_scale_tril]


def _precision_trace(q: Any, x: Tensor) -> Tensor:
    """The trace of X^T P X, where P is the precision matrix of q."""
    if isinstance(q, LowRankMultivariateNormal):
        diagonal = q._unbroadcasted_cov_diag.unsqueeze(-1)
        projected = _solved(q._capacitance_tril, q._unbroadcasted_cov_factor.mT @ (x / diagonal))
        return (x.pow(2) / diagonal).sum((-2, -1)) - projected.pow(2).sum((-2, -1))
    return _solved(q._unbroadcasted_scale_tril, x).pow(2).sum((-2, -1))


def _solved(factor: Tensor, x: Tensor) -> Tensor:
    return solve_lower(factor, x)


@_registered([MultivariateNormal, LowRankMultivariateNormal], MultivariateNormal)
@_registered([MultivariateNormal, LowRankMultivariateNormal], LowRankMultivariateNormal)
def _kl_multivariate_normals(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be "
            f"computed: {p.event_shape} and {q.event_shape}"
        )
    trace = sum((_precision_trace(q, root) for root in _roots(p)), start=flambeau.zeros((), dtype=p.loc.dtype))
    distance = _precision_trace(q, (q.loc - p.loc).unsqueeze(-1))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - int(p.event_shape[0]))


# Families and containers ----------------------------------------------------------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            f"divergences: {type(p).__name__} and {type(q).__name__}"
        )
    params = [param.detach().requires_grad_() for param in p._natural_params]
    normalizer = p._log_normalizer(*params)
    means = flambeau.autograd.grad(normalizer.sum(), params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    batch_ndims = result.dim()
    for param_p, param_q, mean in zip(params, q._natural_params, means, strict=True):
        term = (param_q - param_p) * mean
        result = result - _sum_rightmost(term, term.dim() - batch_ndims)
    return result


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"KL between Independents with {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims} "
            "reinterpreted batch dimensions is not implemented"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """An invertible map of both distributions leaves the divergence as it is."""
    if p.transforms != q.transforms:
        raise NotImplementedError(f"KL needs equal transforms, but got {p.transforms} and {q.transforms}")
    if p.event_shape != q.event_shape:
        raise NotImplementedError(f"KL needs equal event shapes, but got {p.event_shape} and {q.event_shape}")
    base = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(base, len(p.event_shape) - len(p.base_dist.event_shape))
