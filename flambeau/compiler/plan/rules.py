"""Which ops can be written to a sheet, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WINDOWS = frozenset(("unsafe_view", "detach"))
"""Ops that only look at memory in another way, beside those that say so themselves."""

BY_THEIR_KERNELS = frozenset((
    "mm", "addmm", "bmm", "baddbmm", "copied_like", "contiguous_clone", "clone", "threshold",
    "threshold_backward", "pow_number", "sum_all", "sum_dim", "mean_all", "mean_dim", "rnn_layer", "recurrent_backward",
))  # fmt: skip
"""Ops whose kernels are written in NumPy alone, for arrays that are small."""

RULES: dict[str, Callable[..., Any]] = {}
"""Ops that are written down in a way of their own: `(sheet, call, *arguments)`, stand-ins for arrays."""


def address_of(array: Any) -> int:
    """Where an array begins."""
    place: int = array.__array_interface__["data"][0]
    return place
