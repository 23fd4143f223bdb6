"""From a constraint to a transform whose values satisfy it, for optimisation and inference without constraints.

`biject_to(constraint)` gives a bijection from the real numbers, `transform_to(constraint)` any suitable map, often a
simpler one. Both registries can be extended: `@transform_to.register(MyConstraint)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from . import constraints, transforms
from .constraints import Constraint
from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A map from classes of constraints to functions that make a transform for a constraint of that class."""

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    @overload
    def register(self, constraint: Any, factory: None = None) -> Callable[[Factory], Factory]: ...

    @overload
    def register(self, constraint: Any, factory: Factory) -> Factory: ...

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Say how to transform to a class of constraints, or to that of an instance; a decorator without `factory`."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        if isinstance(constraint, Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """A transform to `constraint`, whose class must be registered itself.

        Args:
            constraint (Constraint): the constraint.

        Returns:
            Transform: the transform that the factory registered for its class makes.

        Raises:
            NotImplementedError: no factory is registered for constraints of this class.

        Example:
            >>> torch.distributions.transform_to(torch.distributions.constraints.positive)(torch.tensor([0.0]))
            tensor([1.])
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*classes: Any) -> Callable[[Factory], Factory]:
    def decorate(factory: Factory) -> Factory:
        for constraint in classes:
            biject_to.register(constraint, factory)
            transform_to.register(constraint, factory)
        return factory

    return decorate


@_both(constraints.real)
def _to_real(constraint: Any) -> Transform:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater_than(constraint: Any) -> Transform:
    return _exp_then(constraint.lower_bound, 1)


@_both(constraints.less_than)
def _to_less_than(constraint: Any) -> Transform:
    return _exp_then(constraint.upper_bound, -1)


def _exp_then(loc: Any, scale: int) -> Transform:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(loc, scale)])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Transform:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Transform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint: Any) -> Transform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_semidefinite)
@transform_to.register(constraints.positive_definite)
def _transform_to_positive_definite(constraint: Any) -> Transform:
    return transforms.PositiveDefiniteTransform()


def _register_containers(registry: ConstraintRegistry) -> None:
    """The constraints that are made of others: each part goes to the same registry."""

    def to_independent(constraint: Any) -> Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def to_cat(constraint: Any) -> Transform:
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    def to_stack(constraint: Any) -> Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, to_independent)
    registry.register(constraints.cat, to_cat)
    registry.register(constraints.stack, to_stack)


_register_containers(biject_to)
_register_containers(transform_to)
