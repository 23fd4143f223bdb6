"""The history of one number, in a bounded number of points however long the run is."""

from __future__ import annotations

from collections.abc import Iterator

MOST_POINTS = 512
"""Wider than a chart in dots, so that halving the points is never seen."""


class Series:
    """Numbers that came one after another; a point stands for the mean of `stride` of them."""

    def __init__(self) -> None:
        self.stride = 1
        self._points: list[tuple[float, float]] = []
        self._sum, self._summed = 0.0, 0
        self.before: float | None = None
        self._epoch_sum, self._epoch_count, self._epoch_over = 0.0, 0, False

    def add(self, value: float, at: float) -> None:
        """Enter `value`, which belongs to the place `at` of the run (in epochs)."""
        if self._epoch_over:
            self.before = self.mean
            self._epoch_sum, self._epoch_count, self._epoch_over = 0.0, 0, False
        self._epoch_sum += value
        self._epoch_count += 1
        self._sum += value
        self._summed += 1
        if self._summed == self.stride:
            self._points.append((at, self._sum / self._summed))
            self._sum, self._summed = 0.0, 0
        if len(self._points) == MOST_POINTS:
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points = [(at, (first + second) / 2) for (_, first), (at, second) in pairs]
            self.stride *= 2

    @property
    def mean(self) -> float:
        """The mean over the latest epoch that has numbers."""
        return self._epoch_sum / self._epoch_count

    def end_epoch(self) -> None:
        """What comes now belongs to another epoch; `before` is then the mean of this one."""
        self._epoch_over = True

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """Places and values, in order."""
        yield from self._points
        if self._summed:
            yield self._points[-1][0] if self._points else 0.0, self._sum / self._summed
