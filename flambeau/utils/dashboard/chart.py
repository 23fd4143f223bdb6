"""Curves drawn with characters: braille cells of two by four dots where they can be shown, asterisks elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

Curve = Iterable[tuple[float, float]]
Painter = Callable[[int, str], str]
"""Colours characters of the curve with this number."""

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a cell's dots, by row and column."""
_NOTHING = -1


class _Canvas:
    """Dots on a grid of cells, each of which shows the curve that came last to it."""

    def __init__(self, width: int, height: int, braille: bool) -> None:
        self.width, self.height, self.braille = width, height, braille
        self.across, self.down = (2, 4) if braille else (1, 1)
        self._cells: dict[tuple[int, int], tuple[int, int]] = {}

    def dot(self, x: int, y: int, curve: int) -> None:
        """Set the dot in column `x` from the left and row `y` from the top."""
        place = (y // self.down, x // self.across)
        bits, _ = self._cells.get(place, (0, 0))
        self._cells[place] = (bits | _DOTS[y % self.down][x % self.across], curve)

    def line(self, row: int, paint: Painter) -> str:
        """The cells of a row as text, neighbours of one curve painted together."""
        cells = [self._cells.get((row, column), (0, _NOTHING)) for column in range(self.width)]
        shown = []
        for curve, run in itertools.groupby(cells, key=lambda cell: cell[1]):
            text = "".join(self._character(bits) for bits, _ in run)
            shown.append(text if curve == _NOTHING else paint(curve, text))
        return "".join(shown)

    def _character(self, bits: int) -> str:
        if not bits:
            return " "
        return chr(_BRAILLE + bits) if self.braille else "*"


def chart(
    curves: Sequence[Curve],
    end: float,
    width: int,
    height: int,
    braille: bool,
    written: Callable[[float], str],
    paint: Painter,
) -> list[str]:
    """`height` lines of `width` characters, the vertical axis included; the horizontal one goes from 0 to `end`.

    Points that are not finite are left out.
    """
    points = [[point for point in curve if math.isfinite(point[1])] for curve in curves]
    values = [value for curve in points for _, value in curve]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    labels = [written(high), *[""] * (height - 2), written(low)]
    margin = max(map(len, labels))
    canvas = _Canvas(max(1, width - margin - 2), height, braille)
    for number, curve in enumerate(points):
        _trace(canvas, curve, number, end, low, high)
    axis = "┤" if braille else "|"
    return [f"{label:>{margin}} {axis}{canvas.line(row, paint)}" for row, label in enumerate(labels)]


def _trace(
    canvas: _Canvas, curve: Sequence[tuple[float, float]], number: int, end: float, low: float, high: float
) -> None:
    """Set the dots of one curve, and those between points that are neighbours."""
    last_x, last_y = canvas.width * canvas.across - 1, canvas.height * canvas.down - 1
    before: tuple[int, int] | None = None
    for at, value in curve:
        x = min(last_x, round(at / end * last_x)) if end > 0 else 0
        # Half of each: the difference of two numbers near the largest would not be finite.
        y = round((high / 2 - value / 2) / (high / 2 - low / 2) * last_y)
        for between_x, between_y in _between(before or (x, y), (x, y)):
            canvas.dot(between_x, between_y, number)
        before = x, y


def _between(start: tuple[int, int], stop: tuple[int, int]) -> Iterable[tuple[int, int]]:
    """The dots of a straight stroke, both ends included."""
    steps = max(abs(stop[0] - start[0]), abs(stop[1] - start[1]), 1)
    for step in range(steps + 1):
        part = step / steps
        yield round(start[0] + (stop[0] - start[0]) * part), round(start[1] + (stop[1] - start[1]) * part)
