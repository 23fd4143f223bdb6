"""Whether programs asked for deterministic algorithms, and what that means: memory that nobody wrote has known content,
and an op whose result may depend on the order of its writes says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .caller import warn_user


class _Determinism:
    """The present settings; `fills` says whether uninitialised memory is to be filled."""

    __slots__ = ("asked", "fill_wanted", "fills", "warn_only")

    def __init__(self) -> None:
        self.asked = False
        self.warn_only = False
        self.fill_wanted = True
        self.fills = False

    def set(self, asked: bool, warn_only: bool, fill_wanted: bool) -> None:
        self.asked, self.warn_only, self.fill_wanted = asked, warn_only, fill_wanted
        self.fills = asked and fill_wanted


DETERMINISM = _Determinism()


def fill_unwritten(array: Any) -> None:
    """Fill memory with what shows best that nobody wrote it: NaN, the largest integer, True."""
    kind = array.dtype.kind
    if kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    elif array.dtype.names:  # held as bits: all of them set are NaN, or the largest number of a type with one NaN
        array.fill(b"\xff" * array.itemsize)
    else:
        array.fill(True if kind == "b" else np.nan)


def alert_not_deterministic(name: str) -> None:
    """Refuse or warn, if deterministic algorithms were asked for: the result of `name` may depend on an order."""
    if not DETERMINISM.asked:
        return
    setting = "True, warn_only=True" if DETERMINISM.warn_only else "True"
    message = (
        f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms"
        f"({setting})'. Where it writes to a place twice, either value may stay."
    )
    if not DETERMINISM.warn_only:
        raise RuntimeError(f"{message} Turn the setting off for this operation, or let it warn only (warn_only=True).")
    warn_user(message)
