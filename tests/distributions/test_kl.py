"""Kullback-Leibler divergences: every registered pair, the choice of a formula, and errors."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
import pytest
import torch as pytorch
from torch.distributions.kl import _KL_REGISTRY

import flambeau

from ..support.differential import differential, outcome, warned
from .cases import plain

# Two distributions of each class, batched and broadcastable against each other.
BUILDERS: dict[str, Any] = {
    "Bernoulli": lambda D, t: (D.Bernoulli(t([0.0, 0.3, 0.9, 1.0])), D.Bernoulli(t([[0.4], [1.0], [0.0]]))),
    "Beta": lambda D, t: (D.Beta(t([0.5, 2.0]), t([1.5, 3.0])), D.Beta(t([[1.5], [4.0]]), t(2.5))),
    "Binomial": lambda D, t: (D.Binomial(5, t([0.2, 0.7])), D.Binomial(5, t([[0.5], [0.1]]))),
    "Categorical": lambda D, t: (
        D.Categorical(t([[0.2, 0.8], [0.0, 1.0]])),
        D.Categorical(t([[[0.5, 0.5]], [[1.0, 0.0]]])),
    ),
    "Cauchy": lambda D, t: (D.Cauchy(t([0.5, -1.0]), t(1.5)), D.Cauchy(t([[0.0], [2.0]]), t(2.5))),
    "ContinuousBernoulli": lambda D, t: (
        D.ContinuousBernoulli(t([0.2, 0.4999, 0.9])),
        D.ContinuousBernoulli(t([[0.4], [0.7]])),
    ),
    "Dirichlet": lambda D, t: (D.Dirichlet(t([[0.5, 2.0, 1.0]])), D.Dirichlet(t([[1.5, 2.5, 0.5], [1.0, 1.0, 1.0]]))),
    "Exponential": lambda D, t: (D.Exponential(t([0.5, 2.0])), D.Exponential(t([[1.0], [3.0]]))),
    "ExponentialFamily": lambda D, t: (
        D.Wishart(t(3.5), t([[2.0, 0.3], [0.3, 1.0]])),
        D.Wishart(t(5.0), t([[1.0, 0.1], [0.1, 1.5]])),
    ),
    "Gamma": lambda D, t: (D.Gamma(t([0.5, 2.0]), t([1.5, 3.0])), D.Gamma(t([[1.5], [4.0]]), t(2.5))),
    "Geometric": lambda D, t: (D.Geometric(t([0.2, 0.7])), D.Geometric(t([[0.5], [0.1]]))),
    "Gumbel": lambda D, t: (D.Gumbel(t([0.5, -1.0]), t(1.5)), D.Gumbel(t([[0.0], [2.0]]), t(2.5))),
    "HalfNormal": lambda D, t: (D.HalfNormal(t([0.5, 2.0])), D.HalfNormal(t([[1.0], [3.0]]))),
    "Independent": lambda D, t: (
        D.Independent(D.Normal(t([0.5, -1.0]), t(1.0)), 1),
        D.Independent(D.Normal(t([[0.0, 2.0], [1.0, 1.0]]), t(2.0)), 1),
    ),
    "Laplace": lambda D, t: (D.Laplace(t([0.5, -1.0]), t(1.5)), D.Laplace(t([[0.0], [2.0]]), t(2.5))),
    "LowRankMultivariateNormal": lambda D, t: (
        D.LowRankMultivariateNormal(t([0.5, -1.0]), t([[1.0], [0.5]]), t([1.0, 2.0])),
        D.LowRankMultivariateNormal(t([[0.0, 1.0], [1.0, 1.0]]), t([[0.3], [2.0]]), t([0.5, 1.5])),
    ),
    "MultivariateNormal": lambda D, t: (
        D.MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.3], [0.3, 1.0]])),
        D.MultivariateNormal(t([[0.0, 1.0], [1.0, 1.0]]), scale_tril=t([[0.8, 0.0], [-0.5, 1.1]])),
    ),
    "Normal": lambda D, t: (D.Normal(t([0.5, -1.0]), t(1.5)), D.Normal(t([[0.0], [2.0]]), t(2.5))),
    "OneHotCategorical": lambda D, t: (
        D.OneHotCategorical(t([[0.2, 0.8], [0.0, 1.0]])),
        D.OneHotCategoricalStraightThrough(t([[[0.5, 0.5]], [[1.0, 0.0]]])),
    ),
    "Pareto": lambda D, t: (D.Pareto(t([[0.2, 2.0], [1.0, 1.5]]), t([0.7, 3.0])), D.Pareto(t([[0.5], [0.05]]), t(1.2))),
    "Poisson": lambda D, t: (D.Poisson(t([0.5, 2.0])), D.Poisson(t([[1.0], [3.0]]))),
    "TransformedDistribution": lambda D, t: (
        D.TransformedDistribution(D.Normal(t([0.5, -1.0]), t(1.5)), [D.ExpTransform(), D.AffineTransform(1.0, 2.0)]),
        D.TransformedDistribution(D.Normal(t([1.5, 1.0]), t(0.5)), [D.ExpTransform(), D.AffineTransform(1.0, 2.0)]),
    ),
    "Uniform": lambda D, t: (D.Uniform(t([0.1, -1.0, 0.6]), t([0.9, 0.5, 2.0])), D.Uniform(t([[-1.5], [0.0]]), t(3.0))),
}
PAIRS = sorted({(p.__name__, q.__name__) for p, q in _KL_REGISTRY})
COMPARABLE = [each for each in PAIRS if each != ("ContinuousBernoulli", "Uniform")]  # see the last test


def pair(T: Any, p: str, q: str, requires_grad: bool = False) -> tuple[Any, Any, list[Any]]:
    leaves: list[Any] = []

    def tensor(values: Any) -> Any:
        leaves.append(T.tensor(values, dtype=T.float64, requires_grad=requires_grad))
        return leaves[-1]

    first, second = BUILDERS[p](T.distributions, tensor)[0], BUILDERS[q](T.distributions, tensor)[1]
    shape = T.broadcast_shapes(first.batch_shape, second.batch_shape)  # some of PyTorch's formulas do not broadcast
    return first.expand(shape), second.expand(shape), leaves


@pytest.mark.parametrize(("p", "q"), COMPARABLE)
@differential(tolerance=1e-3)
def test_registered_pairs(T: Any, p: str, q: str) -> Any:
    first, second, _ = pair(T, p, q)
    return plain(T.distributions.kl_divergence(first, second))


@pytest.mark.parametrize(("p", "q"), COMPARABLE)
@differential(tolerance=1e-3)
def test_gradients(T: Any, p: str, q: str) -> Any:
    first, second, leaves = pair(T, p, q, requires_grad=True)
    kl = T.distributions.kl_divergence(first, second)
    finite = kl[kl.isfinite() & ~kl.isnan()]
    if not finite.requires_grad or not finite.numel():
        return None
    grads = T.autograd.grad(finite.sum(), leaves, allow_unused=True)
    return [None if grad is None else [plain(grad.isfinite()), plain(grad.nan_to_num(0.0, 0.0, 0.0))] for grad in grads]


def test_the_same_pairs_are_registered() -> None:
    from flambeau.distributions.kl import _KL_REGISTRY as ours

    assert sorted((p.__name__, q.__name__) for p, q in ours) == PAIRS


def test_samples_agree_with_the_formulas() -> None:
    """A second oracle: the mean of log p(x) - log q(x) over many samples."""
    flambeau.manual_seed(0)
    for p, q in PAIRS:
        first, second, _ = pair(flambeau, p, q)
        value = flambeau.distributions.kl_divergence(first, second).detach().numpy()
        if p == "ExponentialFamily" or not np.isfinite(value).all():
            continue
        second._validate_args = False
        x = first.sample((1500, *(1,) * (value.ndim - len(first.batch_shape)))).expand(
            1500, *value.shape, *first.event_shape
        )
        gain = (first.log_prob(x) - second.log_prob(x)).numpy()
        error = gain.std(0) / np.sqrt(1500)
        assert (np.abs(gain.mean(0) - value) < 6 * error + 1e-6).all(), (p, q, gain.mean(0), value)


def test_batches() -> None:
    """Formulas broadcast, and an exponential family is summed over its events only."""
    D, t = flambeau.distributions, flambeau.tensor
    p, q = D.Wishart(t([3.5, 4.5]), flambeau.eye(2)), D.Wishart(t([5.0, 2.5]), 2 * flambeau.eye(2))
    each = [
        D.kl_divergence(D.Wishart(a, flambeau.eye(2)), D.Wishart(b, 2 * flambeau.eye(2)))
        for a, b in ((3.5, 5.0), (4.5, 2.5))
    ]
    flambeau.testing.assert_close(D.kl_divergence(p, q), flambeau.stack(each))
    kl = D.kl_divergence(D.Uniform(t([0.1, -1.0]), 0.9), D.Beta(t([[2.0], [3.0]]), 2.0))
    assert kl.shape == (2, 2)
    assert kl.isinf().tolist() == [[False, True]] * 2


@differential
def test_dispatch(T: Any) -> Any:
    D = T.distributions

    class A(D.Normal):
        pass

    class B(D.Normal):
        pass

    a, b = A(0.0, 1.0), B(1.0, 2.0)
    before = plain(D.kl_divergence(a, b))
    D.register_kl(A, D.Normal)(lambda p, q: "by p")
    D.register_kl(D.Normal, B)(lambda p, q: "by q")
    ambiguous = warned(lambda: D.kl_divergence(a, b), "Ambiguous kl_divergence(A, B). Please register_kl(A, B)")
    clear = D.kl_divergence(a, D.Normal(0.0, 1.0)), D.kl_divergence(D.Normal(0.0, 1.0), b)
    D.register_kl(A, B)(lambda p, q: "exact")
    return before, ambiguous, clear, D.kl_divergence(a, b)


@differential
def test_errors(T: Any) -> Any:
    D = T.distributions
    kl = D.kl_divergence
    normal = D.Normal(T.zeros(2, 3), 1.0)
    flat = D.MultivariateNormal(T.zeros(2), T.eye(2))
    low = D.LowRankMultivariateNormal(T.zeros(3), T.ones(3, 1), T.ones(3))
    return (
        outcome(lambda: kl(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0)), "No KL(p || q) is implemented for p type Cauchy"),
        outcome(lambda: D.register_kl(3, D.Normal)),
        outcome(lambda: kl(D.Independent(normal, 1), D.Independent(normal, 2))),
        outcome(lambda: kl(D.LogNormal(0.0, 1.0), D.HalfNormal(1.0))),
        outcome(
            lambda: kl(D.Binomial(2, T.tensor(0.2)), D.Binomial(3, T.tensor(0.2))), "q.total_count > p.total_count"
        ),
        plain(kl(D.Binomial(3, T.tensor(0.2)), D.Binomial(2, T.tensor(0.2)))),
        [outcome(lambda p=p, q=q: kl(p, q), "event shapes cannot be computed") for p, q in ((flat, low), (low, flat))],
        outcome(lambda: kl(D.Dirichlet(T.ones(2)), D.Beta(1.0, 1.0)), "be computed using Bregman divergences"),
    )


def test_a_uniform_of_the_same_support() -> None:
    """PyTorch says infinity here, though the supports agree."""
    D = flambeau.distributions
    p, q = D.ContinuousBernoulli(0.3), D.Uniform(0.0, 1.0)
    assert abs(float(D.kl_divergence(p, q)) + float(p.entropy())) < 1e-6
    T = pytorch.distributions
    assert T.kl_divergence(T.ContinuousBernoulli(0.3), T.Uniform(0.0, 1.0)).isinf()


@differential
def test_divergences_of_foreign_classes(T: Any) -> Any:
    D = T.distributions

    class Foreign(abc.ABC):  # noqa: B024  (a class that others are declared to belong to)
        pass

    class Concrete(Foreign):
        pass

    class Declared:
        pass

    Foreign.register(Declared)
    D.register_kl(Foreign, D.Normal)(lambda p, q: "foreign")
    D.register_kl(Concrete, Foreign)(lambda p, q: "both foreign")
    normal = D.Normal(T.tensor(0.0), T.tensor(1.0))
    return [
        D.kl_divergence(Concrete(), normal),
        D.kl_divergence(Declared(), normal),
        D.kl_divergence(Concrete(), Declared()),
        outcome(lambda: D.kl_divergence(Declared(), Declared()), "No KL(p || q) is implemented"),
        outcome(lambda: D.register_kl("Normal", D.Normal)),
    ]
