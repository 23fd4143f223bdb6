"""Attributes that are others of the object, or of one of its parts, under a name of their own."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


def same_as(path: str, doc: str | None = None) -> Any:
    """A property to be read only: `mean: Tensor = same_as("loc")`, or `loc: Tensor = same_as("base_dist.loc")`."""
    return property(attrgetter(path), doc=doc)
