"""Which line of the user's program is running: every node and every in-place change remembers it for error messages."""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from types import CodeType, FrameType

PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
GENERATED = "<flambeau "
"""The beginning of the file names of functions that the package writes itself."""

Place = tuple[CodeType, int]
"""A code object and the offset of the instruction in it: cheap to take, turned into a line only when somebody asks."""


class _Internal(dict[str, bool]):
    """Whether a file is the package's own, by its name."""

    def __missing__(self, file: str) -> bool:
        internal = self[file] = file.startswith((PACKAGE, GENERATED))
        return internal


IS_INTERNAL = _Internal()


def calling_place(inner: int = 2) -> Place | None:
    """Where the innermost frame outside this package stands; `inner`: so many callers are known to be the package's."""
    try:
        frame = sys._getframe(inner + 1)
    except ValueError:  # called from no Python code at all: a thread can start in one of our methods
        return None
    code = frame.f_code
    return place_of(frame.f_back) if IS_INTERNAL[code.co_filename] else (code, frame.f_lasti)


def place_of(frame: FrameType | None) -> Place | None:
    """Where the innermost frame outside this package stands, from `frame` on."""
    while frame is not None:
        code = frame.f_code
        if not IS_INTERNAL[code.co_filename]:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, in the name of the innermost line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, GENERATED)):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_given: set[str] = set()
_always = False


def warn_user_once(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, but say the same only once in a process, unless `set_warn_always` asks for more."""
    if _always or message not in _given:
        _given.add(message)
        warn_user(message, category)


def warn_of_old_name(old: str, new: str) -> None:
    """Name the function that replaces another."""
    warn_user_once(
        f"torch.{old} is deprecated in favor of torch.{new} and will be removed in a future PyTorch release."
    )


def warn_of_complex_half() -> None:
    """What users of complex32 are told."""
    warn_user_once("ComplexHalf support is experimental and many operators don't support it yet.")


def set_warn_always(b: bool, /) -> None:
    """Let warnings that are given once in a process be given each time.

    Args:
        b (bool): whether they are.

    Example:
        >>> torch.set_warn_always(False)
    """
    global _always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _always = b


def is_warn_always_enabled() -> bool:
    """Whether warnings that are given once in a process are given each time.

    Returns:
        bool: whether they are.

    Example:
        >>> torch.is_warn_always_enabled()
        False
    """
    return _always


def line_of(place: Place) -> tuple[str, int, str]:
    """File name, line number and source line of `place`."""
    code, instruction = place
    number = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            number = line
    return code.co_filename, number, linecache.getline(code.co_filename, number).strip()


def describe_place(place: Place | None) -> str:
    """`place` for a message: the file, the line and its source."""
    if place is None:
        return "an unknown line"
    file, number, source = line_of(place)
    return f'{file}:{number}: "{source}"' if source else f"{file}:{number}"
