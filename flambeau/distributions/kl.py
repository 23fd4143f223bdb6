"""Kullback-Leibler divergences: the registry of formulas and the choice among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from flambeau import Tensor

from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
AnyFormula = TypeVar("AnyFormula", bound=Formula)

_KL_REGISTRY: dict[tuple[type, type], Formula] = {}
_KL_MEMOIZE: dict[tuple[type, type], Formula | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[AnyFormula], AnyFormula]:
    """A decorator: the function computes KL(p || q) for distributions of these classes and their subclasses.

    Of several that fit, the most specific is used; register the exact pair of classes where that is ambiguous. The
    classes need not be distributions: those of other libraries have divergences too.

    Args:
        type_p (type): the class of the first distribution.
        type_q (type): the class of the second distribution.

    Returns:
        a decorator, which returns the function it is given.

    Example:
        >>> class Point(torch.distributions.Normal):
        ...     "A normal distribution of no width."
        >>> @torch.distributions.register_kl(Point, Point)
        ... def between_points(p, q):
        ...     return torch.where(p.loc == q.loc, 0.0, torch.inf)
        >>> torch.distributions.kl_divergence(Point(torch.tensor(1.0), 1.0), Point(torch.tensor(2.0), 1.0))
        tensor(inf)
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a class, such as a Distribution, but got {given}")

    def decorate(formula: AnyFormula) -> AnyFormula:
        _KL_REGISTRY[type_p, type_q] = formula
        _KL_MEMOIZE.clear()  # a new formula may be the better fit
        return formula

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the expectation under p of log p(x) - log q(x).

    >>> from flambeau.distributions import Normal
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)

    Args:
        p (Distribution): the distribution under which the expectation is taken.
        q (Distribution): the other distribution.

    Returns:
        Tensor: a value for each distribution of the batch.
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    formula = _KL_MEMOIZE[pair]
    if formula is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return formula(p, q)


def _dispatch_kl(type_p: type, type_q: type) -> Formula | None:
    """The formula that fits best; if it matters which of the two classes is looked at first, a warning says so."""
    fitting = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fitting:
        return None
    by_p = min(fitting, key=lambda pair: (_distance(type_p, pair[0]), _distance(type_q, pair[1])))
    by_q = min(fitting, key=lambda pair: (_distance(type_q, pair[1]), _distance(type_p, pair[0])))
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def _distance(own: type, above: type) -> int:
    """How far `above` is from a class that is a subclass of it, perhaps by its own word alone (`abc.ABC.register`)."""
    order = own.__mro__
    return order.index(above) if above in order else len(order)
