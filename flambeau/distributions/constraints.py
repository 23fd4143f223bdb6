"""Constraints: regions in which parameters and samples of distributions may lie.

`check(value)` says which elements (or which events, for constraints with `event_dim`) lie inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar

import flambeau
from flambeau import Tensor

from .._core.dtype import INTEGER

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region. `event_dim` trailing dimensions of a value are judged together.

    Example:
        >>> torch.distributions.constraints.positive.check(torch.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """A bool tensor: which events in `value` satisfy the constraint."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


def by_name(**constraints: Constraint) -> dict[str, Constraint]:
    """What the parameters of a distribution have to satisfy, as its `arg_constraints`."""
    return constraints


class _Bounded(Constraint):
    """A constraint by bounds, which its `repr` shows."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


class _BoundedBelow(_Bounded):
    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound


class _BoundedAbove(_Bounded):
    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound


class _BoundedBothWays(_Bounded):
    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


# Constraints that depend on other things ------------------------------------------------------------------------------


class _Dependent(Constraint):
    """Stands for a constraint that depends on other values and so cannot be checked by itself."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        return bool(_known(self._is_discrete, "is_discrete"))

    @property
    def event_dim(self) -> int:
        return int(_known(self._event_dim, "event_dim"))

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """A dependent constraint with more known about it: `constraints.dependent(event_dim=1)`.

        Args:
            is_discrete: whether values are whole numbers, where that is known. Default: `NotImplemented`.
            event_dim: how many of the last dimensions are judged together, where that is known. Default:
                `NotImplemented`.

        Returns:
            _Dependent: a constraint of these properties that stands for one that depends on other values.

        Example:
            >>> torch.distributions.constraints.dependent(is_discrete=True, event_dim=0).event_dim
            0
        """
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def _known(value: Any, name: str) -> Any:
    if value is NotImplemented:
        raise NotImplementedError(f".{name} cannot be determined statically")
    return value


def is_dependent(constraint: Any) -> TypeGuard[_Dependent]:
    """Whether `constraint` is a stand-in that depends on other values.

    Args:
        constraint: the constraint.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.distributions.constraints.is_dependent(torch.distributions.constraints.real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a constraint of the instance, and for the class a dependent constraint.

    Args:
        fn (Callable, optional): the method that returns the constraint.
        is_discrete: whether values are whole numbers, where that is known. Default: `NotImplemented`.
        event_dim: how many of the last dimensions are judged together, where that is known. Default: `NotImplemented`.

    Example:
        >>> class Below(torch.distributions.Distribution):
        ...     @torch.distributions.constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return torch.distributions.constraints.less_than(1.0)
        >>> torch.distributions.constraints.is_dependent(Below.support)
        True
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]  # a decorator
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """`base_constraint` for all elements of the last `reinterpreted_batch_ndims` batch dimensions together.

    Args:
        base_constraint (Constraint): the constraint.
        reinterpreted_batch_ndims (int): how many of the last batch dimensions are judged together.

    Example:
        >>> constraint = torch.distributions.constraints
        >>> constraint.independent(constraint.positive, 1).check(torch.tensor([1.0, -1.0]))
        tensor(False)
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _assert_constraint(base_constraint)
        assert isinstance(reinterpreted_batch_ndims, int), "reinterpreted_batch_ndims must be an int"
        assert reinterpreted_batch_ndims >= 0, "reinterpreted_batch_ndims must be non-negative"
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        return int(self.base_constraint.event_dim) + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_but(result, result.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """`base_constraint` for a value under every component of a mixture.

    Args:
        base_constraint (Constraint): the constraint.

    Example:
        >>> constraint = torch.distributions.constraints
        >>> constraint.MixtureSameFamilyConstraint(constraint.positive).check(torch.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        _assert_constraint(base_constraint)
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        return int(self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        batch_ndims = value.dim() - self.event_dim
        if batch_ndims < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_but(self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)), batch_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


def _assert_constraint(constraint: Any) -> None:
    assert isinstance(constraint, Constraint), f"base_constraint must be a Constraint, got {type(constraint).__name__}"


def _all_but(result: Tensor, kept: int) -> Tensor:
    """Whether all elements hold, for each position in the first `kept` dimensions."""
    return result.reshape((*result.shape[:kept], -1)).all(-1)


# Numbers --------------------------------------------------------------------------------------------------------------


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # false for NaN


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


_Answers = TypeVar("_Answers")


def _if_whole(value: Any, result: _Answers) -> _Answers:
    """`result` where numbers are whole, which integers need not be asked."""
    is_integer = value._kind.dtype.category == INTEGER if isinstance(value, Tensor) else value.dtype.kind in "iu"
    return result if is_integer else (value % 1 == 0) & result


class _IntegerInterval(_BoundedBothWays):
    """Whole numbers within [lower_bound, upper_bound].

    Args:
        lower_bound (Tensor or float): the lower bound.
        upper_bound (Tensor or float): the upper bound.

    Example:
        >>> torch.distributions.constraints.integer_interval(0, 2).check(torch.tensor([2.0, 0.5]))
        tensor([ True, False])
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _if_whole(value, (value >= self.lower_bound) & (value <= self.upper_bound))


class _IntegerLessThan(_BoundedAbove):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _if_whole(value, value <= self.upper_bound)


class _IntegerGreaterThan(_BoundedBelow):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _if_whole(value, value >= self.lower_bound)


class _GreaterThan(_BoundedBelow):
    """Numbers above a bound.

    Args:
        lower_bound (Tensor or float): the lower bound.

    Example:
        >>> torch.distributions.constraints.greater_than(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_BoundedBelow):
    """Numbers that are not below a bound.

    Args:
        lower_bound (Tensor or float): the lower bound.

    Example:
        >>> torch.distributions.constraints.greater_than_eq(1.0).check(torch.tensor([0.0, 1.0]))
        tensor([False,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_BoundedAbove):
    """Numbers below a bound.

    Args:
        upper_bound (Tensor or float): the upper bound.

    Example:
        >>> torch.distributions.constraints.less_than(1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_BoundedBothWays):
    """Numbers within [lower_bound, upper_bound].

    Args:
        lower_bound (Tensor or float): the lower bound.
        upper_bound (Tensor or float): the upper bound.

    Example:
        >>> torch.distributions.constraints.interval(0.0, 1.0).check(torch.tensor([1.0, 2.0]))
        tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_BoundedBothWays):
    """Numbers within [lower_bound, upper_bound).

    Args:
        lower_bound (Tensor or float): the lower bound.
        upper_bound (Tensor or float): the upper bound.

    Example:
        >>> torch.distributions.constraints.half_open_interval(0.0, 1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


# Vectors --------------------------------------------------------------------------------------------------------------


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(Constraint):
    """Counts that add up to at most `upper_bound`.

    Args:
        upper_bound (Tensor or float): the upper bound.

    Example:
        >>> torch.distributions.constraints.multinomial(3).check(torch.tensor([1.0, 2.0]))
        tensor(True)
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# Matrices -------------------------------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_but(value.tril() == value, value.dim() - 2)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: their rows have length one."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance: float = flambeau.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = value.detach().norm(dim=-1)
        return lower_cholesky.check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return flambeau.full(
            value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=flambeau.bool, device=value.device
        )


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return flambeau.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        eigenvalues: Tensor = flambeau.linalg.eigvalsh(value)
        return (eigenvalues >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        info: Tensor = flambeau.linalg.cholesky_ex(value).info
        return info == 0


# Constraints side by side ---------------------------------------------------------------------------------------------


class _Sequence(Constraint):
    """Several constraints along dimension `dim`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        assert all(isinstance(each, Constraint) for each in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(each.is_discrete for each in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(int(each.event_dim) for each in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for value with {value.dim()} dimensions"
        )


class _Cat(_Sequence):
    """A constraint for each of the pieces, of the given `lengths`, that are joined along `dim`.

    Args:
        cseq (sequence of Constraints): the constraints, one for each piece.
        dim (int): the dimension along which the pieces stand. Default: `0`.
        lengths (sequence of ints, optional): the length of each piece; None means 1 each.

    Example:
        >>> constraint = torch.distributions.constraints
        >>> constraint.cat([constraint.positive, constraint.real]).check(torch.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.cseq), f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        starts = [sum(self.lengths[:position]) for position in range(len(self.lengths))]
        pieces = [value.narrow(self.dim, *window) for window in zip(starts, self.lengths, strict=True)]
        return flambeau.cat([each.check(piece) for each, piece in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Sequence):
    """A constraint for each of the slices along `dim`.

    Args:
        cseq (sequence of Constraints): the constraints, one for each piece.
        dim (int): the dimension along which the pieces stand. Default: `0`.

    Example:
        >>> constraint = torch.distributions.constraints
        >>> constraint.stack([constraint.positive, constraint.real]).check(torch.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    @property
    def event_dim(self) -> int:
        event_dim = super().event_dim
        return event_dim + 1 if self.dim + event_dim < 0 else event_dim

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = [value.select(self.dim, position) for position in range(value.size(self.dim))]
        return flambeau.stack([each.check(piece) for each, piece in zip(self.cseq, slices, strict=False)], self.dim)


# The public names -----------------------------------------------------------------------------------------------------

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
