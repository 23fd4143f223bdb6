"""`torch._lobpcg`: the largest or smallest eigenvalues of a matrix."""

from __future__ import annotations

from flambeau._ops.linalg.lobpcg import lobpcg

__all__ = ["lobpcg"]
