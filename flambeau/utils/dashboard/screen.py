"""A block of lines on a terminal that is drawn again in place, and what the terminal can show."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO, TypeVar

T = TypeVar("T")

_HIDE_CURSOR, _SHOW_CURSOR = "\033[?25l", "\033[?25h"
_ERASE_TO_END_OF_LINE, _ERASE_BELOW = "\033[K", "\033[J"
COLOURS = {"bold": "1", "dim": "2", "cyan": "36", "yellow": "33", "magenta": "35", "green": "32"}


class Screen:
    """The last lines of a terminal. Where the stream is none, `live` is False and nothing is drawn."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.coloured = self.live and not os.environ.get("NO_COLOR")
        self.braille = _can_write(stream, "⠿┤━─")
        self._drawn = 0

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        return shutil.get_terminal_size()

    def paint(self, text: str, colour: str) -> str:
        """`text` in a colour, if colours are wanted."""
        return f"\033[{COLOURS[colour]}m{text}\033[0m" if self.coloured and text else text

    def draw(self, lines: Sequence[str]) -> None:
        """Put `lines` in place of those drawn last; what would not fit on the screen is left out."""
        lines = lines[: max(1, self.size[1] - 1)]
        body = "".join(f"{line}{_ERASE_TO_END_OF_LINE}\n" for line in lines)
        self.stream.write(f"{_HIDE_CURSOR}{self._back()}{body}{_ERASE_BELOW}")
        self.stream.flush()
        self._drawn = len(lines)

    def write_above(self, text: str) -> None:
        """Write lines that stay, above the block."""
        self.stream.write(f"{self._back()}{_ERASE_BELOW}{text}\n" if self.live else f"{text}\n")
        self.stream.flush()
        self._drawn = 0

    def leave(self) -> None:
        """Let the block stand as it is and give the cursor back."""
        if self.live:
            self.stream.write(_SHOW_CURSOR)
            self.stream.flush()
        self._drawn = 0

    def _back(self) -> str:
        return f"\033[{self._drawn}F" if self._drawn else "\r"


def in_notebook(batches: Iterable[T], total: int, label: str) -> Iterable[T]:
    """`batches`, in a notebook with tqdm's bar while they are taken; elsewhere as they are."""
    if "ipykernel" not in sys.modules:
        return batches
    try:
        bar = importlib.import_module("tqdm.notebook" if _has_widgets() else "tqdm").tqdm
    except ImportError:
        return batches
    # On standard error, tqdm's default, notebooks would show the bar in red.
    shown: Iterable[T] = bar(batches, total=total or None, desc=label, leave=False, file=sys.stdout)
    return shown


def _has_widgets() -> bool:
    """Whether the notebook can draw tqdm's bar; without the package tqdm warns, and a bar of text takes its place."""
    try:
        importlib.import_module("ipywidgets")
    except ImportError:
        return False
    return True


def _can_write(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
