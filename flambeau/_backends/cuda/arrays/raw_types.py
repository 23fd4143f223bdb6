"""The types as which elements move."""

from __future__ import annotations

from typing import Any

import numpy as np

RAW: dict[int, Any] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
"""By the size of an element, the type as which it is moved where only its bits matter."""
