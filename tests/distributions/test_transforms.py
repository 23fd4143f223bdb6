"""Transforms: values, inverses, Jacobians, shapes, caches, composition, equality."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import flambeau

from ..support.differential import differential, outcome
from .cases import plain

MAKERS: dict[str, Any] = {
    "identity": lambda X, t: X.identity_transform,
    "exp": lambda X, t: X.ExpTransform(),
    "log": lambda X, t: X.ExpTransform().inv,
    "power": lambda X, t: X.PowerTransform(t([2.0, -0.5, 3.0])),
    "sigmoid": lambda X, t: X.SigmoidTransform(),
    "logit": lambda X, t: X.SigmoidTransform().inv,
    "softplus": lambda X, t: X.SoftplusTransform(),
    "tanh": lambda X, t: X.TanhTransform(),
    "abs": lambda X, t: X.AbsTransform(),
    "affine": lambda X, t: X.AffineTransform(1.0, -2.0),
    "affine of tensors": lambda X, t: X.AffineTransform(t([1.0, 2.0, 3.0]), t([[2.0], [-0.5]])),
    "affine of vectors": lambda X, t: X.AffineTransform(t([1.0, 2.0, 3.0]), t([2.0, -0.5, 1.5]), event_dim=1),
    "affine of matrices": lambda X, t: X.AffineTransform(0.5, 3, event_dim=2),
    "softmax": lambda X, t: X.SoftmaxTransform(),
    "stick breaking": lambda X, t: X.StickBreakingTransform(),
    "corr cholesky": lambda X, t: X.CorrCholeskyTransform(),
    "reshape": lambda X, t: X.ReshapeTransform((2, 3), (6,)),
    "independent": lambda X, t: X.IndependentTransform(X.TanhTransform(), 1),
    "cat": lambda X, t: X.CatTransform([X.ExpTransform(), X.TanhTransform()], -1, [1, 2]),
    "cat of vectors": lambda X, t: X.CatTransform([X.IndependentTransform(X.ExpTransform(), 1), X.TanhTransform()], 0),
    "cat within vectors": lambda X, t: X.CatTransform(
        [X.IndependentTransform(X.ExpTransform(), 1), X.ExpTransform()], -1, [1, 2]
    ),
    "stack": lambda X, t: X.StackTransform([X.ExpTransform(), X.TanhTransform()], 0),
    "composition": lambda X, t: X.ComposeTransform([X.TanhTransform(), X.AffineTransform(1.5, 2.0), X.ExpTransform()]),
    "composition to vectors": lambda X, t: X.ComposeTransform(
        [X.AffineTransform(0.0, 2.0), X.StickBreakingTransform()]
    ),
    "composition from vectors": lambda X, t: X.ComposeTransform(
        [X.StickBreakingTransform(), X.AffineTransform(0.0, 2.0)]
    ),
    "inverse composition": lambda X, t: X.ComposeTransform([X.ExpTransform(), X.AffineTransform(0.0, -2.0)]).inv.inv,
}


# Not injective, or onto a scaled simplex, whose coordinates are not free.
WITHOUT_DENSITY = ("abs", "softmax", "reshape", "composition from vectors")


def made(T: Any, name: str) -> Any:
    return MAKERS[name](T.distributions.transforms, lambda values: T.tensor(values, dtype=T.float64))


@pytest.mark.parametrize("name", MAKERS)
@differential(tolerance=1e-4)
def test_values_and_jacobians(T: Any, name: str) -> Any:
    transform = made(T, name)
    x = T.tensor([[0.1, 0.7, 0.4], [0.9, 0.3, 0.25]], dtype=T.float64, requires_grad=True)
    y = transform(x)
    slope = outcome(lambda: transform.log_abs_det_jacobian(x, y))
    grads = []
    if slope[0] == "value" and slope[1].requires_grad:
        slope[1].sum().backward(retain_graph=True)
        grads.append(plain(x.grad))
    y.cos().sum().backward()
    back = transform.inv(y.detach())
    return (
        plain(y),
        plain(slope[1]) if slope[0] == "value" else slope,
        grads,
        plain(x.grad),
        plain(back),
        outcome(lambda: plain(transform.inv.log_abs_det_jacobian(y.detach(), back))),
    )


@pytest.mark.parametrize("name", MAKERS)
@differential
def test_attributes(T: Any, name: str) -> Any:
    transform = made(T, name)
    names = ("domain", "codomain", "bijective", "event_dim")
    return (
        repr(transform),
        repr(transform.inv),
        [
            outcome(lambda each=each, name=name: repr(getattr(each, name)))
            for each in (transform, transform.inv)
            for name in names
        ],
        outcome(lambda: plain(transform.sign)),
        tuple(transform.forward_shape((4, 2, 3))),
        outcome(lambda: tuple(transform.inv.forward_shape(transform.forward_shape((4, 2, 3))))),
        transform.inv is transform.inv,
        transform.inv.inv is transform,
        transform == made(T, name),
        transform.inv == made(T, name).inv,
        transform == T.distributions.transforms.ExpTransform(),
        outcome(lambda: hash(transform), "unhashable type"),
    )


@pytest.mark.parametrize("name", [each for each in MAKERS if each not in WITHOUT_DENSITY])
def test_jacobian_is_that_of_the_values(name: str) -> None:
    """By numbers: the determinant of the derivative of the free coordinates of the output."""
    transform = made(flambeau, name)
    x = flambeau.tensor([[0.1, 0.7, 0.4], [0.9, 0.3, 0.25]], dtype=flambeau.float64)

    def free(y: Any) -> Any:
        if name == "corr cholesky":
            return flambeau.distributions.utils.tril_matrix_to_vec(y, -1).flatten()
        return y[..., :3].flatten()

    jacobian = flambeau.autograd.functional.jacobian(lambda each: free(transform(each.reshape(2, 3))), x.flatten())
    total = transform.log_abs_det_jacobian(x, transform(x)).sum()
    flambeau.testing.assert_close(total, flambeau.linalg.slogdet(jacobian).logabsdet)


@differential(tolerance=1e-5)
def test_matrices(T: Any) -> Any:
    X = T.distributions.transforms
    x = T.arange(18, dtype=T.float64).reshape(2, 3, 3).sin()
    observed = []
    for transform in (X.LowerCholeskyTransform(), X.PositiveDefiniteTransform()):
        y = transform(x)
        observed += [
            plain(y),
            plain(transform.inv(y)),
            repr(transform),
            repr(transform.domain),
            repr(transform.codomain),
        ]
        observed.append(outcome(lambda transform=transform, y=y: transform.log_abs_det_jacobian(x, y)))
    return observed


@differential(tolerance=1e-4)
def test_cumulative_distribution(T: Any) -> Any:
    X, D = T.distributions.transforms, T.distributions
    transform = X.CumulativeDistributionTransform(D.Laplace(T.tensor(0.5, dtype=T.float64), 2.0))
    x = T.tensor([-1.0, 0.5, 3.0], dtype=T.float64)
    y = transform(x)
    return (
        plain(y),
        plain(transform.inv(y)),
        plain(transform.log_abs_det_jacobian(x, y)),
        (repr(transform), repr(transform.domain), repr(transform.codomain), transform.sign, transform.bijective),
        transform.with_cache(1)._cache_size,
    )


@differential
def test_extremes(T: Any) -> Any:
    X = T.distributions.transforms
    far = T.tensor([-1000.0, -20.0, 20.0, 1000.0])
    return (
        [plain(each(far)) for each in (X.SigmoidTransform(), X.TanhTransform(), X.SoftplusTransform())],
        plain(X.SigmoidTransform().inv(T.tensor([0.0, 1.0]))),
        plain(X.SigmoidTransform().log_abs_det_jacobian(far, far)),
        plain(X.SoftplusTransform().inv(T.tensor([0.0, 1e-8, 50.0]))),
        plain(X.TanhTransform().log_abs_det_jacobian(far, far)),
        plain(X.StickBreakingTransform()(far)),
        plain(X.StickBreakingTransform().inv(T.tensor([0.0, 0.5, 0.5, 0.0]))),
        plain(X.CorrCholeskyTransform()(far[:3])),
    )


@pytest.mark.parametrize("name", [each for each in MAKERS if each not in ("identity", "log", "logit")])
@differential
def test_cache(T: Any, name: str) -> Any:
    transform = made(T, name).with_cache(1)
    x = T.tensor([[0.1, 0.7, 0.4], [0.9, 0.3, 0.25]], dtype=T.float64)
    y = transform(x)
    return (
        transform._cache_size,
        transform(x) is y,
        transform.inv(y) is x,
        transform.inv(y.clone()) is x,
        transform.with_cache(1) is transform,
        transform.with_cache(0)._cache_size,
        transform.inv._cache_size,
    )


@differential
def test_equality_and_pickling(T: Any) -> Any:
    X = T.distributions.transforms
    t = T.tensor
    affine, power = X.AffineTransform, X.PowerTransform
    exp = X.ExpTransform()
    again = pickle.loads(pickle.dumps(exp.inv.inv))
    return (
        affine(1.0, 2.0) == affine(1, 2),
        affine(1.0, 2.0) == affine(t(1.0), t(2.0)),
        affine(1.0, 2.0) == affine(1.0, 3.0),
        affine(t([1.0, 2.0]), 1) == affine(t([1.0, 2.0]), 1),
        power(2.0) == power(t(2.0)),
        power(2.0) == power(3.0),
        X.Transform() == X.Transform(),
        X.ReshapeTransform((2,), (2,)) == X.ReshapeTransform((2,), (2,)),
        X.ComposeTransform([exp, affine(1, 2)]) == X.ComposeTransform([X.ExpTransform(), affine(1, 2)]),
        X.ComposeTransform([exp]) == exp,
        exp != X.TanhTransform(),
        (repr(again), again == exp),
    )


@differential
def test_errors(T: Any) -> Any:
    X = T.distributions.transforms
    one = T.tensor(1.0)

    class Custom(X.Transform):
        def __init__(self, a: int) -> None:
            super().__init__()

    few = "Too few dimensions on input"
    return (
        outcome(lambda: X.Transform(2), "cache_size must be 0 or 1"),
        outcome(lambda: Custom(1).with_cache(1), ".with_cache is not implemented"),
        [outcome(lambda name=name: getattr(X.Transform(), name)(one)) for name in ("__call__", "_inv_call")],
        outcome(lambda: X.Transform().log_abs_det_jacobian(one, one)),
        outcome(lambda: X.Transform().sign),
        outcome(
            lambda: X.ReshapeTransform((2, 3), (6,)).event_dim, "use either .domain.event_dim or .codomain.event_dim"
        ),
        outcome(lambda: X.ReshapeTransform((2, 3), (5,)), "have different numbers of elements"),
        outcome(lambda: X.ReshapeTransform((2, 3), (6,)).forward_shape((1, 5)), "Shape mismatch"),
        outcome(lambda: X.ReshapeTransform((2, 3), (6,)).forward_shape((1,)), few),
        outcome(lambda: X.ReshapeTransform((2, 3), (6,)).inverse_shape((5,)), "Shape mismatch"),
        outcome(lambda: X.ReshapeTransform((2, 3), (6,))(T.zeros(5))),
        outcome(
            lambda: X.CorrCholeskyTransform().forward_shape((4,)), "Input is not a flattened lower-diagonal number"
        ),
        outcome(lambda: X.CorrCholeskyTransform().inverse_shape((3, 2)), "Input is not square"),
        outcome(lambda: X.CorrCholeskyTransform().forward_shape(()), few),
        outcome(lambda: X.SoftmaxTransform().forward_shape(()), few),
        outcome(lambda: X.StickBreakingTransform().inverse_shape(()), few),
        outcome(lambda: X.IndependentTransform(X.ExpTransform(), 1)(one), few),
        outcome(lambda: X.IndependentTransform(X.ExpTransform(), 1).inv(one), few),
        outcome(lambda: X.CatTransform([3]), "All elements of tseq must be Transform instances"),
        outcome(lambda: X.CatTransform([X.ExpTransform()], 0, [1, 2]), "must match"),
        outcome(lambda: X.CatTransform([X.ExpTransform()])(T.zeros(2)), "x.size(0) = 2 must equal length 1"),
        outcome(lambda: X.StackTransform([X.ExpTransform()])(T.zeros(2)), "x.size(0) = 2 must equal len(transforms) 1"),
        outcome(lambda: X.StackTransform([X.ExpTransform()], 3)(T.zeros(2)), "dim 3 out of range for tensor"),
    )


@differential(tolerance=1e-4)
def test_transformed_distributions(T: Any) -> Any:
    D, X = T.distributions, T.distributions.transforms
    base = D.Normal(T.zeros(2, 3, dtype=T.float64), 1.0)
    observed = []
    for transforms in (
        [],
        X.AffineTransform(T.zeros(4, 1, 1, dtype=T.float64), 2.0),
        X.AffineTransform(1.0, -2.0),
        X.AffineTransform(T.zeros(3, dtype=T.float64), T.ones(3, dtype=T.float64), 1),
        [X.StickBreakingTransform()],
        [X.ExpTransform(), X.ReshapeTransform((3,), (3, 1))],
        [X.IndependentTransform(X.TanhTransform(), 1), X.AffineTransform(0.5, 2.0)],
        [X.SigmoidTransform(), X.AffineTransform(0.0, -1.0)],
    ):
        distribution = D.TransformedDistribution(base, transforms)
        T.default_generator.manual_seed(3)
        value = distribution.rsample((2,))
        T.default_generator.manual_seed(3)
        larger = distribution.expand((5, *distribution.batch_shape))
        observed.append(
            (
                repr(distribution),
                repr(distribution.base_dist),
                (distribution.batch_shape, distribution.event_shape, distribution.has_rsample),
                repr(distribution.support),
                plain(value),
                plain(distribution.log_prob(value)),
                outcome(lambda distribution=distribution, value=value: plain(distribution.cdf(value))),
                outcome(lambda distribution=distribution: plain(distribution.icdf(T.tensor(0.3, dtype=T.float64)))),
                (larger.batch_shape, larger.event_shape),
                plain(larger.sample()),
            )
        )
    return observed


@differential
def test_bad_transformed_distributions(T: Any) -> Any:
    D, X = T.distributions, T.distributions.transforms
    base = D.Normal(0.0, 1.0)
    folded = D.TransformedDistribution(base, X.AbsTransform())
    return (
        outcome(lambda: D.TransformedDistribution(base, 3), "transforms must be a Transform or list, but was 3"),
        outcome(lambda: D.TransformedDistribution(base, [3]), "transforms must be a Transform or a list of Transforms"),
        outcome(
            lambda: D.TransformedDistribution(base, X.StickBreakingTransform()), "to have shape with size at least 1"
        ),
        [outcome(lambda name=name: getattr(folded, name)(T.tensor(0.5))) for name in ("cdf", "icdf", "log_prob")],
        outcome(lambda: folded.mean),
        D.TransformedDistribution(D.Categorical(T.ones(3)), X.ExpTransform()).has_rsample,
    )


@differential
def test_utils(T: Any) -> Any:
    U = T.distributions.utils
    t = T.tensor
    matrix = T.arange(9.0).reshape(3, 3)

    class Thing:
        computed = 0

        @U.lazy_property
        def value(self) -> Any:
            """A value."""
            self.computed += 1
            return T.ones(2, requires_grad=True) * 2

    thing = Thing()
    with T.no_grad():
        graph = thing.value.requires_grad
    return (
        [plain(each) for each in U.broadcast_all(1, 2.5)],
        [plain(each) for each in U.broadcast_all(t([1, 2]), 2.5)],
        [plain(each) for each in U.broadcast_all(1, t([[1.0], [2.0]], dtype=T.float64), t([2.0, 3.0]))],
        outcome(lambda: U.broadcast_all(1, "a"), "Input arguments must all be instances of Number, torch.Tensor"),
        outcome(lambda: U.broadcast_all(T.zeros(2), T.zeros(3)), "must match the size"),
        plain(U.clamp_probs(t([0.0, 0.5, 1.0]))),
        [plain(U.probs_to_logits(t([0.0, 0.3, 1.0]), is_binary)) for is_binary in (True, False)],
        [plain(U.logits_to_probs(t([-200.0, 0.3, 1.0]), is_binary)) for is_binary in (True, False)],
        [plain(U.tril_matrix_to_vec(matrix, diag)) for diag in (-2, -1, 0, 1, 2)],
        [plain(U.vec_to_tril_matrix(U.tril_matrix_to_vec(matrix + 1, diag), diag)) for diag in (-2, -1, 0, 1)],
        outcome(lambda: U.tril_matrix_to_vec(matrix, 3), "diag (3) provided is outside [-3, 2]"),
        outcome(lambda: U.vec_to_tril_matrix(T.zeros(5)), "The size of last dimension is 5 which cannot be expressed"),
        (graph, thing.value is thing.value, thing.computed, "value" in vars(thing)),
        (isinstance(Thing.value, property), isinstance(Thing.value, U.lazy_property), Thing.value.__doc__),
        math.isclose(U.euler_constant, 0.5772156649015329),
    )
