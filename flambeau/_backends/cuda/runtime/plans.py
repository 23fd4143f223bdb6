"""Plans of calls that are made anew when the level of `flambeau.reproducible` changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Plans = TypeVar("Plans", bound=Any)
_clearings: list[Callable[[], Any]] = []


def of_level(plans: Plans) -> Plans:
    """Plans that hold for one level: a dictionary, or a function that remembers what it returned."""
    _clearings.append(getattr(plans, "cache_clear", None) or plans.clear)
    return plans


def forget_plans() -> None:
    """Forget the plans of the level so far."""
    for clear in _clearings:
        clear()
