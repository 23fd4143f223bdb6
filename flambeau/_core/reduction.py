"""What a loss does with the losses of elements; operators know these by their numbers."""

from __future__ import annotations

NONE, MEAN, SUM = range(3)
REDUCTIONS = ("none", "mean", "sum")
