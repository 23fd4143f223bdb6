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


def choose(kinds: set[str]) -> None:
    """Log these kinds from now on, whatever the environment asks for."""
    _CHOSEN[:] = [kinds]


def _asked() -> set[str]:
    """What was chosen, else the names in `TORCH_LOGS`.

    `+` before one of these asks for more of it, `-` for less, and there is one level here.
    """
    if _CHOSEN:
        return _CHOSEN[0]
    return {each.strip().lstrip("+") for each in os.environ.get("TORCH_LOGS", "").split(",")}


KINDS = ("graph_breaks", "guards", "output_code", "recompiles")
_CHOSEN: list[set[str]] = []
