"""Sequences that fill a cube evenly, under the names of `torch.quasirandom`: not built yet."""

from __future__ import annotations

from ._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).absent("Sobol sequences are not built yet", classes="SobolEngine").parts()
