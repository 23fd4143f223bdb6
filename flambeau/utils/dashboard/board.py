"""`Dashboard`: what a training loop tells it, as a picture on a terminal or as one line an epoch elsewhere."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from types import TracebackType
from typing import Any, TextIO, TypeVar

from ..._core.tensor import Tensor
from .chart import chart
from .screen import Screen, in_notebook
from .series import Series

T = TypeVar("T")

SECONDS_BETWEEN_REDRAWS = 0.1
_SPLIT_COLOURS = ("cyan", "yellow", "magenta", "green")
_NARROWEST_CHART, _LOWEST_CHART, _HIGHEST_CHART = 32, 4, 10


class Dashboard:
    """Shows epoch, step, speed, time left, and the table and curves of whatever `log` is given.

    On a terminal the picture is drawn in place, ten times a second at most; a file or a pipe gets one line an epoch, a
    notebook also a bar of tqdm's for the epoch that runs, where tqdm is installed.
    `formats` says how a number is written, by its name: `{"accuracy": ".1%"}`.

    >>> import io
    >>> out = io.StringIO()
    >>> with Dashboard(epochs=2, formats={"accuracy": ".0%"}, stream=out) as board:
    ...     for epoch in board.epochs():
    ...         for step in board.steps(range(4)):
    ...             board.log(loss=1 / (epoch + step))
    ...         board.log("test", accuracy=0.5)
    >>> print(out.getvalue().splitlines()[0].removesuffix("  0:00"))
    epoch 1/2  loss 0.5208  test accuracy 50%
    """

    def __init__(
        self, epochs: int, *, title: str = "", formats: Mapping[str, str] | None = None, stream: TextIO | None = None
    ) -> None:
        if epochs < 1:
            raise ValueError(f"Dashboard: epochs must be 1 or more, not {epochs}")
        self.title = title
        self.formats = dict(formats or {})
        self._epochs = epochs
        self._epoch, self._step, self._total = 0, 0, 0
        self._screen = Screen(sys.stdout if stream is None else stream)
        self._series: dict[str, dict[str, Series]] = {}  # name of a number -> split -> its history
        self._unread: list[tuple[str, str, Tensor, float]] = []
        self._started = self._first_step = self._last_redraw = time.monotonic()
        self._steps = 0

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last picture standing, after an error or Ctrl-C too."""
        self._redraw(now=True)
        self._screen.leave()

    def epochs(self) -> Iterator[int]:
        """1, 2, ...: the epochs, each of which ends where the next is asked for."""
        for epoch in range(1, self._epochs + 1):
            self._epoch, self._step, self._total = epoch, 0, 0
            yield epoch
            self._end_epoch()

    def steps(self, batches: Iterable[T], total: int | None = None) -> Iterator[T]:
        """`batches` one by one, counted; `total` for those that cannot say how many they are."""
        if total is None:
            total = len(batches) if isinstance(batches, Sized) else 0
        self._step, self._total = 0, total
        for batch in in_notebook(batches, total, self._epoch_text):
            yield batch
            self._step += 1
            self._steps += 1
            if self._steps == 1:  # the first one compiles, allocates, fills caches
                self._first_step = time.monotonic()
            self._redraw()
        self._total = self._step

    def log(self, split: str = "train", /, **values: Any) -> None:
        """Enter numbers of this step. Tensors on another device are read when the picture is drawn: nothing waits."""
        at = self._place
        for name, value in values.items():
            if isinstance(value, Tensor):
                if value.numel() != 1:
                    raise ValueError(f"log(): '{name}' must be one number, but it has shape {list(value.shape)}")
                if not value.is_cpu:
                    self._unread.append((name, split, value.detach().clone(), at))
                    continue
                value = value.item()
            self._enter(name, split, float(value), at)
        if split != "train":
            self._redraw()

    def print(self, *objects: Any) -> None:
        """`print` for while the picture stands: the line stays above it."""
        self._screen.write_above(" ".join(map(str, objects)))
        self._redraw(now=True)

    @property
    def _place(self) -> float:
        """How far the run is, in epochs; an epoch of unknown length counts when it is over."""
        return max(self._epoch - 1, 0) + (self._step / self._total if self._total else 0.0)

    def _enter(self, name: str, split: str, value: float, at: float) -> None:
        self._series.setdefault(name, {}).setdefault(split, Series()).add(value, at)

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for name, split, value, at in unread:
            self._enter(name, split, float(value.item()), at)

    def _end_epoch(self) -> None:
        self._redraw(now=True)
        shown = [self._epoch_text]
        for split in self._splits:
            for name, by_split in self._series.items():
                if split in by_split:
                    mean = self._format(name, by_split[split].mean)
                    shown.append(f"{name} {mean}" if split == "train" else f"{split} {name} {mean}")
                    by_split[split].end_epoch()
        if not self._screen.live:
            self._screen.write_above("  ".join([*shown, clock(time.monotonic() - self._started)]))

    @property
    def _splits(self) -> list[str]:
        return list(dict.fromkeys(split for by_split in self._series.values() for split in by_split))

    @property
    def _epoch_text(self) -> str:
        return f"epoch {self._epoch:>{len(str(self._epochs))}}/{self._epochs}"

    def _format(self, name: str, value: float) -> str:
        return format(value, self.formats.get(name, ".4g"))

    def _redraw(self, now: bool = False) -> None:
        time_now = time.monotonic()
        if not now and (not self._screen.live or time_now - self._last_redraw < SECONDS_BETWEEN_REDRAWS):
            return
        self._last_redraw = time_now
        self._read()
        if self._screen.live:
            self._screen.draw(self._lines(time_now))

    def _lines(self, now: float) -> list[str]:
        columns, rows = self._screen.size
        table = self._table()
        head = [self._head(now, columns), self._bar(columns)]
        height = min(_HIGHEST_CHART, rows - len(head) - len(table) - 4)
        charts = self._charts(columns, height) if height >= _LOWEST_CHART else []
        return [*head, "", *table, *charts]

    def _head(self, now: float, columns: int) -> str:
        parts = [self._epoch_text]
        if self._total:
            parts.append(f"step {self._step:>{len(str(self._total))}}/{self._total}")
        if self._steps > 1 and now > self._first_step:
            parts.append(f"{(self._steps - 1) / (now - self._first_step):.3g} steps/s")
        elapsed = now - self._started
        parts.append(clock(elapsed))
        if 0 < self._place < self._epochs:
            parts.append(f"ETA {clock(elapsed / self._place * (self._epochs - self._place))}")
        text = "  ".join(parts)
        title = self.title[: max(0, columns - len(text) - 3)]
        return (f"{self._screen.paint(title, 'bold')}  " if title else "") + text[: columns - 1]

    def _bar(self, columns: int) -> str:
        full, empty = "━─" if self._screen.braille else "#."
        filled = round(self._place / self._epochs * (columns - 1))
        return self._screen.paint(full * filled, "cyan") + self._screen.paint(empty * (columns - 1 - filled), "dim")

    def _table(self) -> list[str]:
        """A line for each number: its mean in this epoch, and in the one before, for each split."""
        splits = self._splits
        if not splits:
            return []
        rows = [["", *splits]]
        for name, by_split in self._series.items():
            cells = [self._cell(name, by_split[split]) if split in by_split else "" for split in splits]
            rows.append([name, *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for number, row in enumerate(rows):
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            if number == 0:
                padded = [padded[0], *(self._split_paint(index, cell) for index, cell in enumerate(padded[1:]))]
            lines.append("   ".join(padded).rstrip())
        return [*lines, ""]

    def _cell(self, name: str, series: Series) -> str:
        before = "" if series.before is None else f" (before: {self._format(name, series.before)})"
        return self._format(name, series.mean) + before

    def _split_paint(self, number: int, text: str) -> str:
        return self._screen.paint(text, _SPLIT_COLOURS[number % len(_SPLIT_COLOURS)])

    def _charts(self, columns: int, height: int) -> list[str]:
        """The curves of as many numbers as there is room for, side by side."""
        splits = self._splits
        names = list(self._series)[: max(1, columns // _NARROWEST_CHART)]
        if not names:
            return []
        width = (columns - 1) // len(names) - 2
        drawn = []
        for name in names:
            curves = [self._series[name].get(split, ()) for split in splits]
            ends = functools.partial(self._format, name)
            body = chart(curves, self._epochs, width, height, self._screen.braille, ends, self._split_paint)
            drawn.append([self._screen.paint(name[:width].ljust(width), "bold"), *body])
        return ["  ".join(lines).rstrip() for lines in zip(*drawn, strict=True)]


def clock(seconds: float) -> str:
    """Hours only where there are any: 75 gives "1:15"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
