"""The base of all distributions: shapes, validation, and the methods that a distribution may define."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import flambeau
from flambeau import Size, Tensor
from flambeau._core.text.inherited_docs import documented_like

from .._core.names.same_as import same_as
from . import constraints
from ._validation import holds
from .utils import lazy_property

__all__ = ["Distribution"]

Self = TypeVar("Self", bound="Distribution")


class _Undefined:
    """An attribute that distributions define and their base does not have."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        raise NotImplementedError


@functools.lru_cache(maxsize=1024)
def _is_lazy(cls: type, name: str) -> bool:
    """Whether a class computes an attribute when it is first asked for."""
    return isinstance(getattr(cls, name, None), lazy_property)


def _is_own(cls: type) -> bool:
    """Whether a class is one of this package's: subclasses elsewhere say themselves what they share with it."""
    return cls.__module__.startswith(f"{__package__}.")


class Distribution:
    """A batch of probability distributions. Its samples have shape `sample_shape + batch_shape + event_shape`.

    Args:
        batch_shape (sequence of ints): the shape of the batch of distributions. Default: `torch.Size([])`.
        event_shape (sequence of ints): the shape of one sample. Default: `torch.Size([])`.
        validate_args (bool, optional): whether to check parameters and values: one outside of its domain raises
            ValueError. None means the setting of `Distribution.set_default_validate_args`.

    Example:
        >>> d = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: ClassVar[Any] = _Undefined()
    support: Any = _Undefined()

    _validate_args: bool = __debug__
    _batched: ClassVar[tuple[str, ...]]
    """The attributes, tensors and distributions, that `expand` gives a new batch shape. A class names those that are no
    parameters in `arg_constraints`; those of its bases belong to it too.
    """
    _kept: ClassVar[tuple[str, ...]] = ()
    """The attributes that `expand` takes over as they are."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if _is_own(cls):
            documented_like(Distribution)(cls)  # they all have `validate_args`
            own = vars(cls)
            parameters = own.get("arg_constraints")
            names = (*(parameters if isinstance(parameters, dict) else ()), *own.get("_batched", ()))
            if names or "_batched" in own:
                cls._batched = tuple(dict.fromkeys((*names, *getattr(super(cls, cls), "_batched", ()))))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn the validation of arguments on or off, for distributions that do not say it themselves."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args() expects True or False, but got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = Size(),
        event_shape: Sequence[int] = Size(),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint) or self._is_yet_to_compute(name):
                continue
            value = getattr(self, name)
            if not holds(constraint, value):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n"
                    f"{value}"
                )

    def _is_yet_to_compute(self, name: str) -> bool:
        cls: Any = type(self)
        return name not in vars(self) and _is_lazy(cls, name)

    # Shapes -----------------------------------------------------------------------------------------------------------

    batch_shape: Size = same_as("_batch_shape", "The shape over which the parameters are batched.")
    event_shape: Size = same_as("_event_shape", "The shape of a single sample.")

    def expand(self: Self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """This distribution with a larger batch shape; the parameters are views, not copies."""
        if not hasattr(self, "_batched"):
            raise NotImplementedError
        new = self._get_checked_instance(next(filter(_is_own, type(self).__mro__)), _instance)
        batch_shape = Size(batch_shape)
        for name in self._batched:
            if name in vars(self):
                setattr(new, name, self._expanded(vars(self)[name], batch_shape))
        for name in self._kept:
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanded(self, value: Any, batch_shape: Size) -> Any:
        """A parameter for `batch_shape`: what is beyond its batch dimensions stays."""
        shape = value.batch_shape if isinstance(value, Distribution) else value.shape
        return value.expand((*batch_shape, *shape[len(self._batch_shape) :]))

    def _get_checked_instance(self: Self, cls: type[Distribution], _instance: Self | None = None) -> Self:
        """An instance to fill: a subclass with an `__init__` of its own must say itself how it expands."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def _extended_shape(self, sample_shape: Sequence[int] = Size()) -> Size:
        """The shape of samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # Moments ----------------------------------------------------------------------------------------------------------

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    # Samples ----------------------------------------------------------------------------------------------------------

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Random values, without gradient."""
        with flambeau.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Random values through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """The older name of `sample((n,))`."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample((n,))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """A list of events as the support of every distribution in the batch: expanded, or with dimensions of one."""
        batch = self._batch_shape if expand else (1,) * len(self._batch_shape)
        events = values.shape[1:]
        return values.reshape((-1, *(1,) * len(self._batch_shape), *events)).expand((-1, *batch, *events))

    # Densities --------------------------------------------------------------------------------------------------------

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, of `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: the inverse of `cdf`."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    # Validation -------------------------------------------------------------------------------------------------------

    def _check_sample(self, value: Tensor) -> None:
        """Validate an argument of `log_prob` or `cdf`, if this distribution validates."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Raise a ValueError unless `value` has a fitting shape and lies in the support."""
        if not isinstance(value, Tensor):
            raise ValueError(f"The value argument to log_prob must be a Tensor, not {type(value).__name__}")
        batch_ndims = value.dim() - len(self._event_shape)
        if value.shape[max(batch_ndims, 0) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._extended_shape()
        if value.shape != expected:
            sizes = zip(reversed(value.shape), reversed(expected), strict=False)
            if any(1 not in pair and pair[0] != pair[1] for pair in sizes):
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if not holds(support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = ((name, vars(self)[name]) for name in self.arg_constraints if name in vars(self))
        listed = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in shown)
        return f"{type(self).__name__}({listed})"
