"""The source of functions, under the names of `torch._sources`."""

from __future__ import annotations

import inspect
from textwrap import dedent
from typing import Any

__all__ = ["get_source_lines_and_file", "normalize_source_lines"]


def get_source_lines_and_file(obj: Any, error_msg: str | None = None) -> tuple[list[str], int, str | None]:
    """The lines of a function or class, the number of the first, and the file."""
    try:
        lines, number = inspect.getsourcelines(obj)
    except OSError as error:
        raise OSError(f"Can't get source for {obj}." + (f"\n{error_msg}" if error_msg else "")) from error
    return lines, number, inspect.getsourcefile(obj)


def normalize_source_lines(sourcelines: list[str]) -> list[str]:
    """The lines without the indentation that they have in common."""
    return dedent("".join(sourcelines)).splitlines(keepends=True)
