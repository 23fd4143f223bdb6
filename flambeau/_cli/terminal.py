"""Text for terminals: colours where they are wanted, tables, sizes, and names from files made harmless."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33"}


class CommandError(Exception):
    """What a command tells the user before it ends with `status`: 1 for a failure, 2 for a wrong call."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Write a line, to standard output unless told otherwise."""
    (sys.stdout if stream is None else stream).write(text + "\n")


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal with colours, and nobody asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """`text` in a colour, or bold or dim, if the stream is a terminal and nobody asked for plain text."""
    return f"\033[{_CODES[colour]}m{text}\033[0m" if has_colours(stream or sys.stdout) else text


def warn(text: str) -> None:
    """Write a warning to standard error."""
    say(f"{coloured('warning:', 'yellow', sys.stderr)} {text}", sys.stderr)


def printable(text: str, most: int = 200) -> str:
    """`text` from a file as it can be shown: control characters escaped, cut to `most` characters."""
    short = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in short)


def readable_size(count: int) -> str:
    """A number of bytes for people: '3.4 kB'."""
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 999.5 or unit == "TB":
            break
        size /= 1000
    return f"{count} B" if unit == "B" else f"{size:.3g} {unit}"


def plural(count: int, noun: str) -> str:
    """'1 tensor', '2,000 tensors'."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Lines with columns as wide as they must be; the columns in `right` are set to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [coloured(line(head), "bold"), *map(line, rows)]
