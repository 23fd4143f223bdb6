"""`TORCH_LOGS=graph_breaks,recompiles,output_code`: what the compiler does, as it does it, on standard error."""

from __future__ import annotations

import contextlib
import os
import sys


def log(kind: str, text: str) -> None:
    """Write a text if the environment asks for this kind of log."""
    if kind in _asked():
        with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be nothing to write to
            sys.stderr.write("".join([f"[__{kind}] {line}\n" for line in text.splitlines()]))


def _asked() -> set[str]:
    """The names in `TORCH_LOGS`; `+` before one asks for more of it, `-` for less, and there is one level here."""
    return {each.strip().lstrip("+") for each in os.environ.get("TORCH_LOGS", "").split(",")}
