"""What distributions refuse, and in which words; what the base class leaves undefined."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from ..support.differential import differential, outcome, warned
from .cases import plain

BOTH = "Either `probs` or `logits` must be specified, but not both."
CONSTRUCTIONS: dict[str, Any] = {
    "Normal": (
        lambda D, t: D.Normal(t([0.0, 1.0]), t([-1.0, 1.0])),
        (
            "Expected parameter scale (Tensor of shape (2,)) of distribution Normal(loc: torch.Size([2]), scale: "
            "torch.Size([2])) to satisfy the constraint GreaterThan(lower_bound=0.0), but found invalid values:\n"
            "tensor([-1.,  1.])"
        ),
    ),
    "NaN": (lambda D, t: D.Normal(math.nan, 1.0), "to satisfy the constraint Real(), but found invalid values:\nnan"),
    "Uniform": (
        lambda D, t: D.Uniform(t([0.0, 3.0]), t([1.0, 3.0])),
        "to satisfy the constraint LessThan(upper_bound=tensor([1., 3.]))",
    ),
    "Bernoulli": (
        lambda D, t: D.Bernoulli(t([0.5, 1.5])),
        "satisfy the constraint Interval(lower_bound=0.0, upper_bound=1.0)",
    ),
    "Bernoulli of both": (lambda D, t: D.Bernoulli(0.5, 0.4), BOTH),
    "Bernoulli of none": (lambda D, t: D.Bernoulli(), BOTH),
    "Binomial": (lambda D, t: D.Binomial(3), BOTH),
    "Binomial total": (lambda D, t: D.Binomial(-1, 0.5), "satisfy the constraint IntegerGreaterThan(lower_bound=0)"),
    "Categorical": (lambda D, t: D.Categorical(), BOTH),
    "Categorical probs": (lambda D, t: D.Categorical(t(1.0)), "`probs` parameter must be at least one-dimensional."),
    "Categorical logits": (
        lambda D, t: D.Categorical(logits=t(1.0)),
        "`logits` parameter must be at least one-dimensional.",
    ),
    "Categorical negative": (lambda D, t: D.Categorical(t([1.5, -0.5])), "satisfy the constraint Simplex()"),
    "ContinuousBernoulli": (lambda D, t: D.ContinuousBernoulli(), BOTH),
    "ContinuousBernoulli probs": (
        lambda D, t: D.ContinuousBernoulli(t(1.5), validate_args=True),
        "The parameter probs has invalid values",
    ),
    "Dirichlet": (lambda D, t: D.Dirichlet(t(1.0)), "`concentration` parameter must be at least one-dimensional."),
    "Beta": (
        lambda D, t: D.Beta(-1.0, 1.0),
        "satisfy the constraint IndependentConstraint(GreaterThan(lower_bound=0.0), 1)",
    ),
    "Geometric": (lambda D, t: D.Geometric(), BOTH),
    "Geometric zero": (
        lambda D, t: D.Geometric(t([0.0, 1.0])),
        "Geometric(probs: torch.Size([2])) to be positive but found invalid values:\ntensor([0.])",
    ),
    "Independent": (
        lambda D, t: D.Independent(D.Normal(0.0, 1.0), 1),
        "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual 1 vs 0",
    ),
    "LKJCholesky": (
        lambda D, t: D.LKJCholesky(1),
        "Expected dim to be an integer greater than or equal to 2. Found dim=1.",
    ),
    "LowRank loc": (
        lambda D, t: D.LowRankMultivariateNormal(t(1.0), t(1.0), t(1.0)),
        "loc must be at least one-dimensional.",
    ),
    "LowRank factor": (
        lambda D, t: D.LowRankMultivariateNormal(t([1.0]), t([1.0]), t([1.0])),
        "cov_factor must be at least two-dimensional",
    ),
    "LowRank shape": (
        lambda D, t: D.LowRankMultivariateNormal(t([1.0]), t([[1.0], [1.0]]), t([1.0])),
        "cov_factor must be a batch of matrices with shape 1 x m",
    ),
    "LowRank diag": (
        lambda D, t: D.LowRankMultivariateNormal(t([1.0]), t([[1.0]]), t([1.0, 1.0])),
        "cov_diag must be a batch of vectors with shape torch.Size([1])",
    ),
    "LowRank batch": (
        lambda D, t: D.LowRankMultivariateNormal(t([[1.0]] * 3), t([[[1.0]]] * 2), t([1.0])),
        "Incompatible batch shapes",
    ),
    "Mixture": (lambda D, t: D.MixtureSameFamily(1, 2), "instance of torch.distributions.Categorical"),
    "Mixture component": (
        lambda D, t: D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), 2),
        "The Component distribution needs to be an instance of torch.distributions.Distribution",
    ),
    "Mixture count": (
        lambda D, t: D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), D.Normal(t([0.0] * 3), 1.0)),
        "`mixture_distribution component` (2) does not equal `component_distribution.batch_shape[-1]` (3)",
    ),
    "Mixture batch": (
        lambda D, t: D.MixtureSameFamily(D.Categorical(t([[0.5, 0.5]] * 4)), D.Normal(t([[0.0] * 2] * 3), 1.0)),
        "(torch.Size([4])) is not compatible with `component_distribution.batch_shape`(torch.Size([3]))",
    ),
    "Multinomial": (lambda D, t: D.Multinomial(t([1]), t([1.0])), "inhomogeneous total_count is not supported"),
    "MultivariateNormal loc": (
        lambda D, t: D.MultivariateNormal(t(1.0), t([[1.0]])),
        "loc must be at least one-dimensional.",
    ),
    "MultivariateNormal none": (
        lambda D, t: D.MultivariateNormal(t([1.0])),
        "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.",
    ),
    "MultivariateNormal covariance": (
        lambda D, t: D.MultivariateNormal(t([1.0]), t([1.0])),
        "covariance_matrix must be at least two-dimensional",
    ),
    "MultivariateNormal precision": (
        lambda D, t: D.MultivariateNormal(t([1.0]), None, t([1.0])),
        "precision_matrix must be at least two-dimensional",
    ),
    "MultivariateNormal factor": (
        lambda D, t: D.MultivariateNormal(t([1.0]), None, None, t([1.0])),
        "scale_tril matrix must be at least two-dimensional",
    ),
    "MultivariateNormal singular": (
        lambda D, t: D.MultivariateNormal(t([1.0, 0.0]), t([[1.0, 1.0], [1.0, 1.0]])),
        "covariance_matrix: torch.Size([2, 2])) to satisfy the constraint PositiveDefinite()",
    ),
    "NegativeBinomial": (lambda D, t: D.NegativeBinomial(3), BOTH),
    "NegativeBinomial one": (
        lambda D, t: D.NegativeBinomial(3, 1.0),
        "satisfy the constraint HalfOpenInterval(lower_bound=0.0, upper_bound=1.0)",
    ),
    "OneHotCategorical": (lambda D, t: D.OneHotCategorical(), BOTH),
    "RelaxedBernoulli": (lambda D, t: D.RelaxedBernoulli(t(1.0)), BOTH),
    "Wishart none": (
        lambda D, t: D.Wishart(3.0),
        "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.",
    ),
    "Wishart vector": (
        lambda D, t: D.Wishart(3.0, t([1.0])),
        "must be at least two-dimensional, with optional leading batch dimensions",
    ),
    "Wishart df": (
        lambda D, t: D.Wishart(1.0, t([[2.0, 0.0], [0.0, 2.0]])),
        "Value of df=1.0 expected to be greater than ndim - 1 = 1.",
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@differential
def test_parameters(T: Any, name: str) -> Any:
    make, phrase = CONSTRUCTIONS[name]
    return outcome(lambda: make(T.distributions, T.tensor), phrase)


@differential
def test_samples(T: Any) -> Any:
    D, t = T.distributions, T.tensor
    normal, vectors = D.Normal(T.zeros(2), 1.0), D.MultivariateNormal(T.zeros(2), T.eye(2))
    return (
        outcome(lambda: normal.log_prob(3.0), "The value argument to log_prob must be a Tensor"),
        outcome(
            lambda: normal.log_prob(T.zeros(3)),
            "not broadcastable with batch_shape+event_shape: torch.Size([3]) vs torch.Size([2]).",
        ),
        outcome(
            lambda: normal.cdf(t([0.0, math.nan])),
            "Expected value argument (Tensor of shape (2,)) to be within the support (Real()) of the distribution "
            "Normal(loc: torch.Size([2]), scale: torch.Size([2])), but found invalid values:\ntensor([0., nan])",
        ),
        outcome(
            lambda: vectors.log_prob(T.zeros(5, 3)),
            "size of value must match event_shape: torch.Size([5, 3]) vs torch.Size([2]).",
        ),
        outcome(
            lambda: vectors.log_prob(T.zeros(())),
            "The right-most size of value must match event_shape: torch.Size([]) vs torch.Size([2]).",
        ),
        outcome(lambda: D.Bernoulli(t(0.5)).log_prob(t(0.5)), "within the support (Boolean())"),
        outcome(
            lambda: D.Categorical(t([1.0, 1.0])).log_prob(t(2)),
            "within the support (IntegerInterval(lower_bound=0, upper_bound=1))",
        ),
        outcome(
            lambda: D.Uniform(t([0.0, 3.0]), t([1.0, 4.0])).log_prob(t([2.0, 3.0])),
            "within the support (Interval(lower_bound=tensor([0., 3.]), upper_bound=tensor([1., 4.])))",
        ),
        outcome(lambda: D.Multinomial(2, t([0.5, 0.5])).log_prob(t([2.0, 1.0])), "within the support (Multinomial())"),
        outcome(lambda: D.Gamma(1.0, 1.0).log_prob(t(-1.0)), "within the support (GreaterThanEq(lower_bound=0.0))"),
        outcome(lambda: D.HalfNormal(1.0).cdf(t(-1.0)), "within the support"),
        outcome(lambda: D.LogNormal(0.0, 1.0).log_prob(t(-1.0)), "within the support"),
        plain(D.Uniform(0.0, 1.0, validate_args=False).log_prob(t([-1.0, 0.5, 1.0]))),
        plain(D.HalfNormal(1.0, validate_args=False).log_prob(t([-1.0, 0.5]))),
        plain(D.Normal(0.0, -1.0, validate_args=False).scale),
        plain(D.Uniform(0.0, 2.0, validate_args=False).cdf(t([-1.0, 0.5, 5.0]))),
    )


@differential
def test_base_class(T: Any) -> Any:
    D = T.distributions

    class Bare(D.Distribution):
        pass

    class Constrained(D.Distribution):
        arg_constraints: ClassVar[Any] = {}

    class Own(D.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    class Derived(D.Normal):
        pass

    bare = Bare(validate_args=False)
    one = T.tensor(1.0)
    return (
        warned(lambda: Bare((2,), (3,)).batch_shape, "does not define `arg_constraints`"),
        warned(
            lambda: Constrained(validate_args=True)._validate_sample(one), "does not define `support` to enable sample"
        ),
        [
            outcome(lambda name=name: getattr(bare, name))
            for name in ("support", "mean", "variance", "stddev", "arg_constraints")
        ],
        outcome(lambda: bare.mode, "does not implement mode"),
        [
            outcome(lambda name=name: getattr(bare, name)())
            for name in ("sample", "rsample", "entropy", "perplexity", "enumerate_support")
        ],
        [outcome(lambda name=name: getattr(bare, name)(one)) for name in ("log_prob", "cdf", "icdf")],
        outcome(lambda: bare.expand((2,))),
        outcome(lambda: repr(bare)),
        repr(Constrained()),
        outcome(
            lambda: Own().expand((2,)),
            "Subclass Own of Normal that defines a custom __init__ method must also define a custom .expand()",
        ),
        repr(Derived(0.0, 1.0).expand((2,))),
        warned(lambda: tuple(D.Normal(0.0, 1.0).sample_n(3).shape), "`sample_n(n)` will be deprecated"),
        outcome(lambda: D.Distribution.set_default_validate_args(3)),
        outcome(lambda: D.ExponentialFamily(validate_args=False).entropy()),
        warned(lambda: repr(D.Wishart(1.5, T.eye(2))), "Low df values detected."),
    )


@differential
def test_default_validation(T: Any) -> Any:
    D = T.distributions
    try:
        D.Distribution.set_default_validate_args(False)
        off = plain(D.Normal(0.0, -1.0).scale)
        on = outcome(lambda: D.Normal(0.0, -1.0, validate_args=True))
    finally:
        D.Distribution.set_default_validate_args(True)
    return off, on, outcome(lambda: D.Normal(0.0, -1.0)), D.Normal(0.0, 1.0).expand((2,))._validate_args


@differential
def test_user_distribution(T: Any) -> Any:
    """A distribution written as PyTorch's documentation tells, with an `expand` of its own."""
    D = T.distributions

    class Triangle(D.Distribution):
        arg_constraints: ClassVar[Any] = {"width": D.constraints.positive}
        has_rsample = True

        def __init__(self, width: Any, validate_args: Any = None) -> None:
            (self.width,) = D.utils.broadcast_all(width)
            super().__init__(self.width.size(), validate_args=validate_args)

        @D.constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self) -> Any:
            return D.constraints.interval(-self.width, self.width)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Triangle, _instance)
            new.width = self.width.expand(batch_shape)
            super(Triangle, new).__init__(batch_shape, validate_args=False)
            new._validate_args = self._validate_args
            return new

        def rsample(self, sample_shape: Any = ()) -> Any:
            shape = self._extended_shape(sample_shape)
            return self.width * (T.rand(shape) - T.rand(shape))

        def log_prob(self, value: Any) -> Any:
            if self._validate_args:
                self._validate_sample(value)
            return (self.width - value.abs()).log() - 2 * self.width.log()

    triangle = Triangle(T.tensor([1.0, 3.0]))
    larger = triangle.expand(T.Size((4, 2)))
    return (
        repr(triangle),
        plain(larger.sample((2,))),
        plain(D.Independent(larger, 1).log_prob(T.zeros(4, 2))),
        outcome(lambda: triangle.log_prob(T.tensor([0.0, 4.0])), "within the support (Interval("),
        outcome(lambda: Triangle(-1.0), "satisfy the constraint GreaterThan(lower_bound=0.0)"),
        D.TransformedDistribution(triangle, D.ExpTransform()).sample().shape,
    )


def test_distributions_load_on_first_use() -> None:
    program = (
        "import sys, flambeau; assert 'flambeau.distributions' not in sys.modules; "
        "flambeau.distributions.Normal(0.0, 1.0); assert 'flambeau.distributions.kl' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@differential
def test_public_names(T: Any) -> Any:
    D = T.distributions
    return {
        "package": sorted(D.__all__),
        "constraints": sorted(D.constraints.__all__),
        "transforms": sorted(D.transforms.__all__),
        "utils": sorted(D.utils.__all__),
        "kl": sorted(D.kl.__all__),
        "registry": sorted(D.constraint_registry.__all__),
    }
