"""Datasets made of small steps, under the names of `torch.utils.data.datapipes`: what is read, and what is done to it.

`datapipe.py` has the two classes, `iter` and `map` the steps, `_iteration.py` the rule that a pipe has one iterator.
"""

from __future__ import annotations

from . import iter, map

__all__ = ["iter", "map"]
