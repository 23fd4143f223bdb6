"""Every distribution beside PyTorch's: shapes, moments, samples, densities, gradients."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from ..support.differential import differential, outcome
from .cases import ALL, MATRICES, SCALARS, SINGLE, VECTORS, Case, plain

TOLERANCE = 1e-3  # in double precision 1e-9: the special functions of both libraries differ in their last digits
FROM_GAMMA = {"Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT", "Wishart"}


def sample(T: Any, distribution: Any, shape: tuple[int, ...] = (), method: str = "sample") -> Any:
    """A sample after a fixed seed."""
    T.default_generator.manual_seed(7)
    options = {"max_try_correction": 0} if type(distribution).__name__ == "Wishart" and method == "rsample" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(distribution, method)(shape, **options)


def drawn(T: Any, distribution: Any, shape: tuple[int, ...] = ()) -> Any:
    """A sample without gradient. PyTorch's Wishart would draw it several times over."""
    method = "rsample" if type(distribution).__name__ == "Wishart" else "sample"
    return sample(T, distribution, shape, method).detach()


@pytest.mark.parametrize("case", ALL)
@differential(tolerance=TOLERANCE)
def test_shapes_and_names(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    return (
        distribution.batch_shape,
        distribution.event_shape,
        distribution.has_rsample,
        distribution.has_enumerate_support,
        repr(distribution),
        repr(distribution.support),
        distribution.support.event_dim,
        distribution.support.is_discrete,
        sorted(distribution.arg_constraints),
        type(distribution).__name__,
    )


@pytest.mark.parametrize("case", [each for each in ALL if each.values[0].name != "Kumaraswamy"])
@differential(tolerance=TOLERANCE)
def test_moments(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    names = ("mean", "mode", "variance", "stddev")
    return {name: outcome(lambda name=name: plain(getattr(distribution, name))) for name in names}


@pytest.mark.parametrize("case", [each for each in ALL if each.values[0].name == "Kumaraswamy"])
@differential(tolerance=TOLERANCE)
def test_moments_of_kumaraswamy(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    return [plain(each) for each in (distribution.mean, distribution.variance, distribution.stddev)]


@pytest.mark.parametrize("case", ALL)
@differential(tolerance=TOLERANCE)
def test_entropy(T: Any, case: Case) -> Any:
    leaves = case.leaves(T, requires_grad=True)
    distribution = case.make(T, leaves)

    def entropy() -> Any:
        value = distribution.entropy()
        if value.requires_grad:
            value.sum().backward()
        return plain(value), [plain(leaf.grad) for leaf in leaves.values() if hasattr(leaf, "grad")]

    return outcome(entropy), outcome(lambda: plain(distribution.perplexity()))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", SCALARS + VECTORS)
@differential(tolerance=TOLERANCE)
def test_samples(T: Any, case: Case, dtype: str) -> Any:
    distribution = case.make(T, case.leaves(T, dtype))
    return [plain(sample(T, distribution, shape)) for shape in ((), (3,), (2, 20))]


@pytest.mark.parametrize("case", MATRICES)
@differential(tolerance=TOLERANCE)
def test_samples_of_matrices(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    return [plain(drawn(T, distribution, shape)) for shape in ((), (3,), (2, 20))]


@pytest.mark.parametrize("case", [each for each in ALL if each.values[0].name not in FROM_GAMMA])
@differential(tolerance=TOLERANCE)
def test_gradients_through_samples(T: Any, case: Case) -> Any:
    return gradients_through_samples(T, case)


@pytest.mark.parametrize("case", [each for each in ALL if each.values[0].name in FROM_GAMMA])
@differential(tolerance=1e3)
def test_gradients_through_gamma_samples(T: Any, case: Case) -> Any:
    """PyTorch knows the derivative of these samples to about four digits."""
    return gradients_through_samples(T, case)


def gradients_through_samples(T: Any, case: Case) -> Any:
    leaves = case.leaves(T, requires_grad=True)
    distribution = case.make(T, leaves)
    if not distribution.has_rsample:
        return outcome(lambda: distribution.rsample())
    value = sample(T, distribution, (4,), "rsample")
    if not value.requires_grad:
        return plain(value)
    (value * T.arange(value.numel(), dtype=value.dtype).reshape(value.shape).cos()).sum().backward()
    return (
        plain(value),
        value.requires_grad,
        {key: plain(leaf.grad) for key, leaf in leaves.items() if T.is_tensor(leaf)},
    )


@pytest.mark.parametrize("case", ALL)
@differential(tolerance=TOLERANCE)
def test_log_prob_with_gradients(T: Any, case: Case) -> Any:
    leaves = case.leaves(T, requires_grad=True)
    distribution = case.make(T, leaves)
    value = drawn(T, distribution, (3,))
    if not distribution.support.is_discrete and case.name != "LKJCholesky":
        value.requires_grad_()
    log_prob = distribution.log_prob(value)
    if log_prob.requires_grad:
        log_prob.sum().backward()
    grads = {key: leaf.grad for key, leaf in leaves.items() if T.is_tensor(leaf)}
    return plain(log_prob), plain(value.grad), {key: plain(grad) for key, grad in grads.items()}


@pytest.mark.parametrize("case", SCALARS)
@differential(tolerance=TOLERANCE)
def test_cdf_and_icdf(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    value = drawn(T, distribution, (3,))
    uniform = T.rand(value.shape, dtype=T.float64)
    return outcome(lambda: plain(distribution.cdf(value))), outcome(lambda: plain(distribution.icdf(uniform)))


@pytest.mark.parametrize("case", ALL)
@differential(tolerance=TOLERANCE)
def test_expand(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    shape = (3, *distribution.batch_shape)
    larger = distribution.expand(shape)
    value = drawn(T, distribution, (3,))
    again = larger.expand((2, *shape))
    return (
        larger.batch_shape,
        larger.event_shape,
        repr(larger),
        plain(drawn(T, larger, (2,))),
        plain(larger.log_prob(value)),
        again.batch_shape,
        outcome(lambda: plain(larger.mean)),
        outcome(lambda: plain(larger.variance)),
        type(larger) is type(distribution),
    )


@pytest.mark.parametrize("case", ALL)
@differential
def test_enumerate_support(T: Any, case: Case) -> Any:
    distribution = case.make(T)
    return [
        outcome(lambda expand=expand: plain(distribution.enumerate_support(expand=expand))) for expand in (True, False)
    ]


@pytest.mark.parametrize("case", SCALARS)
@differential(tolerance=TOLERANCE)
def test_independent(T: Any, case: Case) -> Any:
    base = case.make(T)
    if not base.batch_shape:
        return None
    distribution = T.distributions.Independent(base, 1)
    value = drawn(T, base, (2,))
    return (
        repr(distribution),
        repr(distribution.support),
        distribution.has_rsample,
        distribution.has_enumerate_support,
        plain(drawn(T, distribution, (2,))),
        plain(distribution.log_prob(value)),
        outcome(lambda: plain(distribution.entropy())),
        outcome(lambda: plain(distribution.mean)),
        outcome(lambda: plain(distribution.mode)) if case.name != "Kumaraswamy" else None,
        outcome(lambda: plain(distribution.enumerate_support())),
        distribution.expand((5, *distribution.batch_shape)).batch_shape,
    )


@pytest.mark.parametrize("components", ["Normal", "MultivariateNormal", "Poisson"])
@differential(tolerance=TOLERANCE)
def test_mixture(T: Any, components: str) -> Any:
    D = T.distributions
    weights = T.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], dtype=T.float64, requires_grad=True)
    loc = T.arange(12, dtype=T.float64).reshape(3, 2, 2)
    parts = {
        "Normal": lambda: D.Normal(loc[..., 0], loc[..., 1] + 1),
        "MultivariateNormal": lambda: D.MultivariateNormal(loc, T.eye(2, dtype=T.float64)),
        "Poisson": lambda: D.Poisson(loc[..., 0]),
    }[components]()
    mixture = D.MixtureSameFamily(D.Categorical(weights), parts)
    value = drawn(T, mixture, (4,))
    log_prob = mixture.log_prob(value)
    log_prob.sum().backward()
    larger = mixture.expand((2, 3))
    return (
        repr(mixture),
        repr(mixture.support),
        plain(value),
        plain(log_prob),
        plain(weights.grad),
        plain(mixture.mean),
        plain(mixture.variance),
        outcome(lambda: plain(mixture.cdf(value))),
        larger.batch_shape,
        plain(drawn(T, larger)),
    )


@pytest.mark.parametrize("case", SINGLE)
@differential(tolerance=2e-5)
def test_in_single_precision(T: Any, case: Case) -> Any:
    leaves = case.leaves(T, "float32", requires_grad=True)
    distribution = case.make(T, leaves)
    larger = distribution.expand((2, *distribution.batch_shape))
    values = [drawn(T, each, (3,)) for each in (distribution, larger)]
    log_probs = [each.log_prob(value) for each, value in zip((distribution, larger), values, strict=True)]
    log_probs[0].sum().backward()
    return (
        repr(distribution),
        [plain(value) for value in values],
        [plain(log_prob) for log_prob in log_probs],
        {key: plain(leaf.grad) for key, leaf in leaves.items()},
        [plain(getattr(distribution, name)) for name in ("mean", "mode", "variance", "stddev")],
        [outcome(lambda name=name: plain(getattr(distribution, name)(values[0]))) for name in ("cdf", "log_cdf")],
        outcome(lambda: plain(distribution.icdf(T.tensor([[0.1], [0.9]])))),
        outcome(lambda: plain(distribution.entropy())),
        repr(distribution.support) if case.name == "VonMises" else plain(distribution.support.upper_bound),
    )


@differential(tolerance=TOLERANCE)
def test_bases_of_the_relaxed_distributions(T: Any) -> Any:
    from importlib import import_module

    name = T.__name__
    logit = import_module(f"{name}.distributions.relaxed_bernoulli").LogitRelaxedBernoulli(
        T.tensor(0.5), T.tensor([0.3])
    )
    exp = import_module(f"{name}.distributions.relaxed_categorical").ExpRelaxedCategorical(
        T.tensor(0.5), T.tensor([0.3, 0.7])
    )
    return [
        (plain(sample(T, each, (2,))), plain(each.log_prob(sample(T, each))), repr(each), each.param_shape)
        for each in (logit, exp)
    ]
