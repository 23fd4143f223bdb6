"""Constraints: what they accept, their attributes and names, and the transforms that lead to them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ..support.differential import differential, outcome
from .cases import plain

VALUES = {
    "numbers": [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, math.nan, math.inf],
    "vectors": [
        [0.5, 0.5, 0.0],
        [1.0, 0.0, 0.0],
        [1.0, 1.0, 0.0],
        [0.2, 0.3, 0.500001],
        [-0.5, 1.0, 0.5],
        [1.5, 1.5, 0.0],
    ],
    "matrices": [
        [[1.0, 0.0], [0.6, 0.8]],
        [[2.0, 0.0], [0.3, -1.0]],
        [[2.0, 1.0], [1.0, 2.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 2.0], [3.0, 4.0]],
    ],
}

MAKERS: dict[str, Any] = {
    **{
        name: lambda C, t, name=name: getattr(C, name)
        for name in (
            "boolean", "real", "positive", "nonnegative", "nonnegative_integer", "positive_integer", "unit_interval",
            "simplex", "one_hot", "real_vector", "lower_triangular", "lower_cholesky", "corr_cholesky", "square",
            "symmetric", "positive_semidefinite", "positive_definite",
        )
    },
    "greater_than": lambda C, t: C.greater_than(0.5),
    "greater_than_eq": lambda C, t: C.greater_than_eq(t(0.5)),
    "less_than": lambda C, t: C.less_than(1),
    "interval": lambda C, t: C.interval(0.0, t(2.0)),
    "interval of tensors": lambda C, t: C.interval(t([0.0]), t([2.0])),
    "half_open_interval": lambda C, t: C.half_open_interval(0.0, 2.0),
    "integer_interval": lambda C, t: C.integer_interval(0, 2),
    "multinomial": lambda C, t: C.multinomial(2),
    "independent": lambda C, t: C.independent(C.positive, 2),
    "mixture": lambda C, t: C.MixtureSameFamilyConstraint(C.simplex),
    "mixture of numbers": lambda C, t: C.MixtureSameFamilyConstraint(C.boolean),
    "cat": lambda C, t: C.cat([C.positive, C.boolean], -1, [1, 1]),
    "cat of vectors": lambda C, t: C.cat([C.simplex, C.real_vector], 0, [2, 4]),
    "stack": lambda C, t: C.stack([C.positive, C.real], -1),
    "stack of vectors": lambda C, t: C.stack([C.simplex, C.real_vector], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
@differential
def test_check(T: Any, name: str) -> Any:
    constraint = MAKERS[name](T.distributions.constraints, T.tensor)
    checked = {}
    for kind, values in VALUES.items():
        if constraint.event_dim <= {"numbers": 1, "vectors": 2, "matrices": 3}[kind]:
            checked[kind] = outcome(lambda values=values: plain(constraint.check(T.tensor(values))))
    return repr(constraint), constraint.event_dim, constraint.is_discrete, checked


@differential
def test_single_matrices(T: Any) -> Any:
    C = T.distributions.constraints
    names = ("lower_triangular", "lower_cholesky", "corr_cholesky", "square", "symmetric", "positive_semidefinite")
    return {
        name: [plain(getattr(C, name).check(T.tensor(value))) for value in VALUES["matrices"]]
        for name in (*names, "positive_definite")
    } | {"rectangle": [plain(getattr(C, name).check(T.zeros(3, 2, 1))) for name in names[3:]]}


@differential
def test_dependent(T: Any) -> Any:
    C = T.distributions.constraints
    known = C.dependent(is_discrete=True, event_dim=1)

    class Thing:
        @C.dependent_property(is_discrete=False, event_dim=2)
        def region(self) -> Any:
            return C.positive

        @C.dependent_property
        def other(self) -> Any:
            return C.real

    return (
        (known.is_discrete, known.event_dim, known().event_dim, repr(known)),
        (
            repr(Thing.region),
            Thing.region.event_dim,
            Thing.region.is_discrete,
            repr(Thing().region),
            repr(Thing().other),
        ),
        [C.is_dependent(each) for each in (C.dependent, known, Thing.region, Thing.other, Thing().region, C.real)],
        outcome(lambda: C.dependent.event_dim, ".event_dim cannot be determined statically"),
        outcome(lambda: Thing.other.is_discrete, ".is_discrete cannot be determined statically"),
        outcome(lambda: C.dependent.check(T.tensor(1.0)), "Cannot determine validity of dependent constraint"),
    )


@differential
def test_errors(T: Any) -> Any:
    C = T.distributions.constraints
    one, three = T.tensor(1.0), T.zeros(3)
    return (
        outcome(lambda: C.Constraint().check(one)),
        outcome(lambda: C.independent(3, 1), "base_constraint must be a Constraint, got int"),
        outcome(lambda: C.independent(C.real, -1)),
        outcome(lambda: C.independent(C.real, 2).check(three), "Expected value.dim() >= 2 but got 1"),
        outcome(lambda: C.MixtureSameFamilyConstraint(3), "base_constraint must be a Constraint, got int"),
        outcome(lambda: C.cat([C.real, 3]), "All elements of cseq must be Constraint instances"),
        outcome(lambda: C.cat([C.real, C.real], 0, [1]), "lengths (1) must match cseq (2)"),
        outcome(lambda: C.cat([C.real]).check(one), "dim 0 out of range for value with 0 dimensions"),
        outcome(lambda: C.stack([C.real], 3).check(three), "dim 3 out of range"),
    )


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", [*MAKERS, "dependent"])
@differential(tolerance=1e-5)
def test_registries(T: Any, name: str, registry: str) -> Any:
    C = T.distributions.constraints
    constraint = C.dependent if name == "dependent" else MAKERS[name](C, T.tensor)
    made = outcome(lambda: getattr(T.distributions, registry)(constraint), *["Cannot transform"][: name == "dependent"])
    if made[0] == "error":
        return made
    transform = made[1]
    shape = {"corr_cholesky": (4, 3), "stack of vectors": (2, 4), "cat of vectors": (6, 4)}.get(name, (4, 2, 2))
    x = T.arange(math.prod(shape), dtype=T.float64).reshape(shape).sin()
    forward = outcome(lambda: transform(x))
    if forward[0] == "error":  # vectors of different lengths side by side
        return repr(transform), forward
    y = forward[1]
    back = outcome(lambda: plain(transform.inv(y)))
    return repr(transform), transform.bijective, plain(y), back, outcome(lambda: plain(constraint.check(y)))


@differential
def test_registering(T: Any) -> Any:
    from importlib import import_module

    C, X = T.distributions.constraints, T.distributions.transforms
    registry = import_module(f"{T.__name__}.distributions.constraint_registry").ConstraintRegistry()

    class Odd(C.Constraint):
        pass

    @registry.register(Odd)
    def odd(constraint: Any) -> Any:
        return X.ExpTransform()

    class Stranger(Odd):
        pass

    registered = registry.register(C.positive, lambda constraint: X.TanhTransform())
    return (
        repr(registry(Odd())),
        repr(registry(C.greater_than(3.0))),
        callable(registered),
        repr(odd(None)),
        outcome(lambda: registry(Stranger()), "Cannot transform Stranger constraints"),
        outcome(lambda: registry(3), "Cannot transform int constraints"),
        outcome(
            lambda: registry.register(3, odd), "Expected constraint to be either a Constraint subclass or instance"
        ),
    )
