"""Tracebacks for users: their own lines, and the line that raised."""

from __future__ import annotations

import contextlib
import os
import sys
from types import TracebackType

import numpy as np

from .caller import IS_INTERNAL

_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_KEEPS_FIRST = sys.version_info < (3, 11)
"""Whether `raise` puts back the traceback that `except` found: what follows its first frame may change, and no more."""
_WHOLE = os.environ.get("FLAMBEAU_FULL_TRACEBACK", "0") == "1"


def leave_out_library(error: BaseException) -> None:
    """Take the package's frames out of an error's traceback, but for the one that raised.

    Those of `contextlib` behind them go as well. `FLAMBEAU_FULL_TRACEBACK=1` in the environment keeps all.
    """
    if _WHOLE:
        return
    context = error.__context__
    if context is not None and _is_of_library(context.__traceback__):  # an attempt of its own, which went another way
        error.__suppress_context__ = True
    kept: list[TracebackType] = []
    trace, left_out = error.__traceback__, False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        left_out = IS_INTERNAL[file] or (left_out and file == contextlib.__file__)
        if trace.tb_next is None or not left_out:
            kept.append(trace)
        trace = trace.tb_next
    result: TracebackType | None = None
    for each in reversed(kept):
        result = TracebackType(result, each.tb_frame, each.tb_lasti, each.tb_lineno)
    if _KEEPS_FIRST and error.__traceback__ is not None and kept[0] is not error.__traceback__:
        error.__traceback__.tb_next = result
    else:
        error.__traceback__ = result


def _is_of_library(trace: TracebackType | None) -> bool:
    """Whether all frames of a traceback are the package's or NumPy's, the outermost one the package's."""
    if trace is None or not IS_INTERNAL[trace.tb_frame.f_code.co_filename]:
        return False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not IS_INTERNAL[file] and not file.startswith(_NUMPY):
            return False
        trace = trace.tb_next
    return True
