"""A line search that ends at a point where the strong Wolfe conditions hold.

The loss must have fallen by a part of what the slope at the beginning promised, and the slope must have become flatter.
The search first goes outwards until it has such a point, or two between which there is one; then it narrows that
interval by cubic interpolation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DECREASE = 1e-4
_CURVATURE = 0.9
_SMALLEST = 1e-9


class Point:
    """The loss and its gradient after a step of `size`; `slope` is the gradient along the direction of the search."""

    __slots__ = ("grad", "loss", "size", "slope")

    def __init__(self, size: Any, loss: float, grad: Any, slope: Any = None) -> None:
        self.size = size
        self.loss = loss
        self.grad = grad
        self.slope = slope

    def flat(self, tolerance: float) -> bool:
        """Whether the gradient is as good as zero."""
        return bool(self.grad.abs().max() <= tolerance)


def strong_wolfe(
    look: Callable[[Any], Point], begin: Point, size: Any, direction: Any, evaluations: int = 25
) -> tuple[Point, int]:
    """The chosen point, and how many were looked at. `look` evaluates the loss after a step of a given size."""
    here = look(size)
    used = 1
    before = begin
    between: list[Point] = []
    while used - 1 < evaluations:
        turn = used - 1
        if _too_high(here, begin) or (turn > 1 and here.loss >= before.loss):
            between = [before, here]
            break
        if abs(here.slope) <= -_CURVATURE * begin.slope:
            return here, used
        if here.slope >= 0:
            between = [before, here]
            break
        further = _interpolated(before, here, here.size + 0.01 * (here.size - before.size), here.size * 10)
        before = here
        here = look(further)
        used += 1
    if not between:
        return min((begin, here), key=lambda point: point.loss), used
    return _narrowed(look, begin, between, direction.abs().max(), evaluations, used)


def _too_high(point: Point, begin: Point) -> bool:
    return bool(point.loss > begin.loss + _DECREASE * point.size * begin.slope)


def _narrowed(
    look: Callable[[Any], Point], begin: Point, between: list[Point], extent: Any, evaluations: int, used: int
) -> tuple[Point, int]:
    stuck = False
    low, high = between if between[0].loss <= between[1].loss else between[::-1]
    first, second = between
    while used - 1 < evaluations and abs(second.size - first.size) * extent >= _SMALLEST:
        left, right = min(first.size, second.size), max(first.size, second.size)
        size = _interpolated(first, second, left, right)
        margin = 0.1 * (right - left)
        if min(right - size, size - left) < margin:
            # Too near to an end. The second time in a row, or beyond it, a tenth of the interval is kept away from it.
            if stuck or size >= right or size <= left:
                size = right - margin if abs(size - right) < abs(size - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = look(size)
        used += 1
        if _too_high(here, begin) or here.loss >= low.loss:
            first, second = (here, second) if high is first else (first, here)
            low, high = (first, second) if first.loss <= second.loss else (second, first)
            continue
        if abs(here.slope) <= -_CURVATURE * begin.slope:
            return here, used
        kept = low if here.slope * (high.size - low.size) >= 0 else high
        first, second = (kept, here) if high is first else (here, kept)
        low, high = here, kept
    return low, used


def _interpolated(one: Point, other: Point, lowest: Any, highest: Any) -> Any:
    """Where the cubic through two points with slopes has its minimum, between `lowest` and `highest`."""
    left, right = (one, other) if one.size <= other.size else (other, one)
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.size - right.size)
    square = mean**2 - left.slope * right.slope
    if square < 0:
        return (lowest + highest) / 2.0
    root = square**0.5
    position = right.size - (right.size - left.size) * (
        (right.slope + root - mean) / (right.slope - left.slope + 2 * root)
    )
    return min(max(position, lowest), highest)
