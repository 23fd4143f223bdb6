"""Attributes that are others of the object, or of one of its parts, under a name of their own."""

from __future__ import annotations

import sys
from typing import Any


def same_as(path: str, doc: str | None = None) -> Any:
    """A property to be read only: `mean: Tensor = same_as("loc")`, or `loc: Tensor = same_as("base_dist.loc")`.

    The getter is code of the line that calls this, and no `attrgetter`: `torch.compile` learns from code which
    attributes count, and tracebacks show the line.
    """
    place = sys._getframe(1)
    lines_before = "\n" * (place.f_lineno - 1)
    getter = eval(compile(f"{lines_before}lambda self: self.{path}", place.f_code.co_filename, "eval"))
    return property(getter, doc=doc)
