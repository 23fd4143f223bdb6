"""What binds a process to its launcher: it ends when that does, however that ended, and leaves it a file of errors."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from types import TracebackType
from typing import Any

from .inheritance import inherited

PIPE = "FLAMBEAU_LAUNCHER"
"""The variable with the pipe of which the launcher holds the other end."""
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_ORPHANED = 1


def _end_with_the_launcher(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os._exit(_ORPHANED)


def write_error(error: BaseException) -> None:
    """Leave an error in the file that the launcher reads."""
    path = os.environ.get(ERROR_FILE)
    if path:
        text = f"{type(error).__name__}: {error}"
        lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        extra = {"py_callstack": lines, "timestamp": str(int(time.time()))}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"message": {"message": text, "extraInfo": extra}}, file)


def _note_errors() -> None:
    show = sys.excepthook

    def note(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> Any:
        write_error(error)
        return show(kind, error, where)

    sys.excepthook = note


def follow_the_launcher() -> None:
    """End when the launcher does, and leave errors in its file."""
    pipe = os.environ.pop(PIPE, None)
    if pipe is not None:
        ends = inherited(int(pipe))
        threading.Thread(target=_end_with_the_launcher, args=(ends,), name="launcher", daemon=True).start()
    _note_errors()
