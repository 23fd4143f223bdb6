"""Distributions by the mathematics: SciPy, sums, integrals and samples as oracles, also where PyTorch errs."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch as pytorch

import flambeau
from flambeau.distributions import (
    Bernoulli,
    Beta,
    ContinuousBernoulli,
    Dirichlet,
    Exponential,
    ExponentialFamily,
    Gamma,
    GeneralizedPareto,
    InverseGamma,
    Kumaraswamy,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Normal,
    Pareto,
    StudentT,
    VonMises,
    Weibull,
    Wishart,
)

DOUBLE = flambeau.float64


def t(*values: Any) -> Any:
    return flambeau.tensor(values if len(values) > 1 else values[0], dtype=DOUBLE)


SCIPY: dict[str, tuple[Any, Any]] = {
    "Normal": (Normal(t(0.5), t(2.0)), scipy.stats.norm(0.5, 2.0)),
    "Gamma": (Gamma(t(2.5), t(3.0)), scipy.stats.gamma(2.5, scale=1 / 3.0)),
    "Beta": (Beta(t(2.5), t(3.0)), scipy.stats.beta(2.5, 3.0)),
    "Exponential": (Exponential(t(3.0)), scipy.stats.expon(scale=1 / 3.0)),
    "InverseGamma": (InverseGamma(t(3.5), t(2.0)), scipy.stats.invgamma(3.5, scale=2.0)),
    "Pareto": (Pareto(t(1.5), t(3.0)), scipy.stats.pareto(3.0, scale=1.5)),
    "StudentT": (StudentT(t(3.5), t(0.5), t(2.0)), scipy.stats.t(3.5, 0.5, 2.0)),
    "Weibull": (Weibull(t(1.5), t(3.0)), scipy.stats.weibull_min(3.0, scale=1.5)),
    "GeneralizedPareto": (GeneralizedPareto(t(0.5), t(2.0), t(0.2)), scipy.stats.genpareto(0.2, 0.5, 2.0)),
    "GeneralizedPareto, zero": (GeneralizedPareto(t(0.5), t(2.0), t(0.0)), scipy.stats.genpareto(0.0, 0.5, 2.0)),
    "GeneralizedPareto, bounded": (GeneralizedPareto(t(0.5), t(2.0), t(-0.3)), scipy.stats.genpareto(-0.3, 0.5, 2.0)),
}


@pytest.mark.parametrize("name", SCIPY)
def test_scipy(name: str) -> None:
    ours, theirs = SCIPY[name]
    quantiles = np.array([0.05, 0.3, 0.5, 0.9])
    x = theirs.ppf(quantiles)
    np.testing.assert_allclose(ours.log_prob(flambeau.tensor(x)).numpy(), theirs.logpdf(x), rtol=1e-9)
    np.testing.assert_allclose(float(ours.mean), theirs.mean(), rtol=1e-9)
    np.testing.assert_allclose(float(ours.variance), theirs.var(), rtol=1e-6)
    np.testing.assert_allclose(float(ours.entropy()), theirs.entropy(), rtol=1e-8)
    for method, argument, expected in (("cdf", x, quantiles), ("icdf", quantiles, x)):
        try:
            result = getattr(ours, method)(flambeau.tensor(argument))
        except NotImplementedError:
            continue
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("kappa", [1e-6, 0.3, 4.0, 80.0, 5000.0])
def test_von_mises(kappa: float) -> None:
    distribution = VonMises(t(0.5), t(kappa))
    x = np.array([-3.0, -0.4, 0.5, 2.5])
    theirs = scipy.stats.vonmises(kappa, loc=0.5)
    np.testing.assert_allclose(distribution.log_prob(flambeau.tensor(x)).numpy(), theirs.logpdf(x), rtol=1e-9)
    expected = 1 - scipy.special.i1e(kappa) / scipy.special.i0e(kappa)
    np.testing.assert_allclose(float(distribution.variance), expected, rtol=1e-9)
    flambeau.manual_seed(0)
    pytorch.manual_seed(0)
    theirs = pytorch.distributions.VonMises(pytorch.tensor(0.5), pytorch.tensor(kappa)).sample((50,))
    ours = VonMises(flambeau.tensor(0.5), flambeau.tensor(kappa)).sample((50,))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=2e-6)


def test_mode_of_kumaraswamy() -> None:
    """PyTorch's is NaN throughout."""
    distribution = Kumaraswamy(t([2.0, 3.0, 1.0, 0.5, 1.0]), t([3.0, 1.5, 2.0, 2.0, 1.0]))
    grid = flambeau.linspace(0.0005, 0.9995, 1999, dtype=DOUBLE).unsqueeze(-1)
    best = grid[distribution.log_prob(grid).argmax(0), 0]
    mode = distribution.mode
    assert flambeau.isclose(mode[:3], best[:3], atol=1e-3).all()
    assert mode[3:].isnan().all()


@pytest.mark.parametrize(
    "distribution",
    [
        Normal(t([0.5, 1.0]), t([1.0, 2.0])),
        Exponential(t([0.5, 2.0])),
        Gamma(t([0.5, 2.0]), t([1.0, 3.0])),
        Bernoulli(t([0.2, 0.5])),
        ContinuousBernoulli(t([0.2, 0.49995, 0.9])),
        Wishart(t([3.5, 4.0]), t([[2.0, 0.3], [0.3, 1.0]])),
    ],
    ids=lambda distribution: type(distribution).__name__,
)
def test_entropy_of_exponential_families(distribution: Any) -> None:
    """The derivative of the log normaliser gives what the closed form says."""
    flambeau.testing.assert_close(ExponentialFamily.entropy(distribution), distribution.entropy())


def test_log_normalizers() -> None:
    """Differences of log normalisers of the families without a mean carrier measure, by their densities."""
    for family, first, second, x in (
        (Beta, (t(2.0), t(3.0)), (t(1.5), t(0.5)), t(0.3)),
        (Dirichlet, (t(2.0, 3.0),), (t(1.5, 0.5),), t(0.3, 0.7)),
    ):
        p, q = family(*first), family(*second)
        statistics = [x.log(), (1 - x).log()] if family is Beta else [x.log()]
        inner = sum(
            ((a - b) * s).sum() for a, b, s in zip(p._natural_params, q._natural_params, statistics, strict=True)
        )
        difference = q._log_normalizer(*q._natural_params) - p._log_normalizer(*p._natural_params)
        flambeau.testing.assert_close(p.log_prob(x) - q.log_prob(x), inner + difference)


def test_wishart_draws_singular_samples_again() -> None:
    """Few degrees of freedom make samples that are singular in float32; PyTorch redraws the good ones instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distribution = Wishart(2.05, 1e-3 * flambeau.eye(3))
    flambeau.manual_seed(0)
    raw = distribution.rsample((300,), max_try_correction=0)
    assert not distribution.support.check(raw).all()
    flambeau.manual_seed(0)
    corrected = distribution.rsample((300,), max_try_correction=60)
    good = distribution.support.check(raw)
    assert distribution.support.check(corrected).all()
    assert (corrected[good] == raw[good]).all()


def test_wishart_mean() -> None:
    flambeau.manual_seed(0)
    distribution = Wishart(t(5.0), t([[2.0, 0.3], [0.3, 1.0]]))
    mean = distribution.sample((4000,)).mean(0)
    assert ((mean - distribution.mean).abs() < 6 * (distribution.variance / 4000).sqrt()).all()


def test_low_rank_is_the_full_distribution() -> None:
    factor, diagonal, loc = t([[1.0], [0.5], [-2.0]]), t([[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]]), t([0.5, -1.0, 0.0])
    low = LowRankMultivariateNormal(loc, factor, diagonal)
    full = MultivariateNormal(loc, factor @ factor.mT + diagonal.diag_embed())
    x = flambeau.randn(5, 2, 3, dtype=DOUBLE)
    close = flambeau.testing.assert_close
    close(low.log_prob(x), full.log_prob(x))
    close(low.entropy(), full.entropy())
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
        close(getattr(low, name), getattr(full, name))
    for other in (
        MultivariateNormal(loc, precision_matrix=full.precision_matrix),
        MultivariateNormal(loc, scale_tril=full.scale_tril),
    ):
        close(other.log_prob(x), full.log_prob(x))
        close(other.covariance_matrix, full.covariance_matrix)


def test_second_derivatives() -> None:
    """Through a sample and its density, as in policy gradients and variational inference."""

    def objective(loc: Any, scale: Any) -> Any:
        flambeau.manual_seed(0)
        distribution = Normal(loc, scale)
        return (distribution.log_prob(distribution.rsample((3,)) ** 2) * 0.5 + distribution.entropy()).sum()

    inputs = (t(0.5, -0.3).requires_grad_(), t(1.2, 0.7).requires_grad_())
    assert flambeau.autograd.gradcheck(objective, inputs)
    assert flambeau.autograd.gradgradcheck(objective, inputs)


def test_certain_events() -> None:
    assert float(Bernoulli(1.0).log_prob(flambeau.tensor(0.0))) < -15
    assert math.isnan(float(Bernoulli(0.5).mode))
    assert float(flambeau.distributions.Geometric(1.0).log_prob(flambeau.tensor(0.0))) == 0.0
    assert float(flambeau.distributions.NegativeBinomial(0, 0.3).log_prob(flambeau.tensor(0.0))) == 0.0
    assert float(flambeau.distributions.Poisson(0.0).log_prob(flambeau.tensor(0.0))) == 0.0
