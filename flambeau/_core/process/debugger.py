"""Whether somebody steps through the program."""

from __future__ import annotations

import sys
from typing import Any

_MONITORING: Any = getattr(sys, "monitoring", None)
"""By which debuggers are told of lines from Python 3.12 on: pdb's own from 3.14 on."""


def is_debugged() -> bool:
    """Whether a debugger, or another tool that is told of each line, is at work in this thread or in all of them."""
    if sys.gettrace() is not None:
        return True
    return _MONITORING is not None and _MONITORING.get_tool(_MONITORING.DEBUGGER_ID) is not None
