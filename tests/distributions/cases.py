"""Distributions with parameters, to be built under PyTorch and under Flambeau alike."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

MATRIX = [[2.0, 0.3], [0.3, 1.0]]
FACTOR = [[[1.2, 0.0], [0.4, 0.9]], [[0.8, 0.0], [-0.5, 1.1]]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A class of distributions with its arguments: nested lists become tensors, and require gradients."""

    name: str
    arguments: dict[str, Any]

    def leaves(self, T: Any, dtype: str = "float64", requires_grad: bool = False) -> dict[str, Any]:
        return {
            key: T.tensor(value, dtype=getattr(T, dtype), requires_grad=requires_grad)
            if isinstance(value, list)
            else value
            for key, value in self.arguments.items()
        }

    def make(self, T: Any, leaves: dict[str, Any] | None = None, **options: Any) -> Any:
        return getattr(T.distributions, self.name)(**(leaves or self.leaves(T)), **options)


def case(name: str, **arguments: Any) -> Any:
    return pytest.param(Case(name, arguments), id=f"{name}-{'-'.join(arguments)}")


SCALARS = [
    case("Bernoulli", probs=[0.2, 0.5, 0.9]),
    case("Bernoulli", logits=[[-1.0, 3.0]]),
    case("Beta", concentration1=[0.5, 1.5, 4.0], concentration0=[[2.0], [0.7]]),
    case("Binomial", total_count=7, probs=[0.2, 0.5, 0.9]),
    case("Binomial", total_count=[3.0, 9.0], logits=[0.4, -0.3]),
    case("Categorical", probs=[[1.0, 2.0, 3.0], [0.5, 0.0, 0.5]]),
    case("Categorical", logits=[0.3, -1.0, 2.0]),
    case("Cauchy", loc=[0.5, -1.0], scale=[[1.0], [2.5]]),
    case("Chi2", df=[0.8, 3.0, 10.0]),
    case("ContinuousBernoulli", probs=[0.1, 0.4995, 0.5, 0.8]),
    case("ContinuousBernoulli", logits=[-2.0, 0.001, 1.0]),
    case("Exponential", rate=[0.5, 2.0]),
    case("FisherSnedecor", df1=[3.0, 7.0], df2=[[5.0], [2.5]]),
    case("Gamma", concentration=[0.4, 1.0, 6.0], rate=[[1.0], [3.0]]),
    case("Geometric", probs=[0.1, 0.6, 1.0]),
    case("Geometric", logits=[-1.0, 0.5]),
    case("Gumbel", loc=[0.5, -1.0], scale=[[1.0], [2.5]]),
    case("HalfCauchy", scale=[1.0, 2.5]),
    case("HalfNormal", scale=[1.0, 2.5]),
    case("InverseGamma", concentration=[0.9, 1.5, 3.5], rate=[[1.0], [3.0]]),
    case("Kumaraswamy", concentration1=[0.5, 2.0], concentration0=[[0.7], [3.0]]),
    case("Laplace", loc=[0.5, -1.0], scale=[[1.0], [2.5]]),
    case("LogNormal", loc=[0.5, -1.0], scale=[[1.0], [0.5]]),
    case("NegativeBinomial", total_count=[3.0, 5.5], probs=[0.3, 0.6]),
    case("NegativeBinomial", total_count=4, logits=[-0.5, 0.6]),
    case("Normal", loc=[0.5, -1.0], scale=[[1.0], [2.5]]),
    case("Normal", loc=0.5, scale=2.0),
    case("Pareto", scale=[1.0, 2.0], alpha=[[0.8], [1.5], [3.0]]),
    case("Poisson", rate=[0.3, 4.0, 40.0]),
    case("RelaxedBernoulli", temperature=[0.7], probs=[0.2, 0.5, 0.9]),
    case("RelaxedBernoulli", temperature=[1.3], logits=[-1.0, 3.0]),
    case("StudentT", df=[0.9, 1.5, 4.0], loc=[[0.5], [-1.0]], scale=1.5),
    case("Uniform", low=[0.0, -2.0], high=[[1.5], [3.0]]),
    case("Weibull", scale=[1.0, 2.5], concentration=[[0.7], [1.0], [3.0]]),
]

VECTORS = [
    case("Dirichlet", concentration=[[0.5, 1.5, 4.0], [2.0, 0.7, 0.3]]),
    case("LogisticNormal", loc=[[0.5, -1.0], [0.0, 2.0]], scale=[1.0, 0.5]),
    case("LowRankMultivariateNormal", loc=[[0.5, -1.0]], cov_factor=[[1.0], [0.5]], cov_diag=[[1.0, 2.0], [0.5, 0.3]]),
    case("Multinomial", total_count=5, probs=[[1.0, 2.0, 3.0], [0.5, 0.0, 0.5]]),
    case("Multinomial", total_count=3, logits=[0.3, -1.0, 2.0]),
    case("MultivariateNormal", loc=[0.5, -1.0], covariance_matrix=MATRIX),
    case("MultivariateNormal", loc=[[[0.5, -1.0]], [[1.0, 0.0]]], precision_matrix=MATRIX),
    case("MultivariateNormal", loc=[0.5, -1.0], scale_tril=FACTOR),
    case("OneHotCategorical", probs=[[1.0, 2.0, 3.0], [0.5, 0.25, 0.25]]),
    case("OneHotCategoricalStraightThrough", logits=[0.3, -1.0, 2.0]),
    case("RelaxedOneHotCategorical", temperature=[0.7], probs=[[1.0, 2.0, 3.0], [0.5, 0.25, 0.25]]),
    case("RelaxedOneHotCategorical", temperature=[1.5], logits=[0.3, -1.0, 2.0]),
]

MATRICES = [
    case("LKJCholesky", dim=3, concentration=[0.5, 1.0, 4.0]),
    case("LKJCholesky", dim=2),
    case("Wishart", df=[4.0, 5.5], covariance_matrix=MATRIX),
    case("Wishart", df=6.0, precision_matrix=MATRIX),
    case("Wishart", df=[4.5, 3.5], scale_tril=FACTOR),
]

ALL = SCALARS + VECTORS + MATRICES

# PyTorch computes these with less than double precision, or refuses it.
SINGLE = [
    case(
        "GeneralizedPareto", loc=[0.5, 0.0, 1.0, 2.0], scale=[1.0, 2.0, 0.5, 1.0], concentration=[0.2, 0.0, -0.4, 0.7]
    ),
    case("VonMises", loc=[0.0, 3.0], concentration=[[0.01], [0.5], [2.0], [5.0]]),
]


def plain(tensor: Any) -> Any:
    """Only the values, dtype and shape of a tensor: not the operations that made it, nor its strides."""
    return (tensor.detach().clone().flatten(), tensor.shape) if hasattr(tensor, "detach") else tensor
