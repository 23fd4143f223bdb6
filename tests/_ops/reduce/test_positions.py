"""Positions are int64 on every platform: NumPy's own are as wide as an address, 32 bits in the browser."""

from __future__ import annotations

import numpy as np

from flambeau._ops.reduce.sort import as_int64


def test_narrow_positions_are_widened_and_others_are_not_copied() -> None:
    narrow = np.array([2, 0, 1], np.int32)
    assert as_int64(narrow).dtype == np.int64
    assert as_int64(narrow).tolist() == [2, 0, 1]
    wide = np.array([2, 0, 1], np.int64)
    assert as_int64(wide) is wide
