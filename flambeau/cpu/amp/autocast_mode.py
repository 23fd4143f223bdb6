"""`autocast` for the CPU under its older name."""

from __future__ import annotations

import warnings

from ... import amp
from ..._core.dtype import bfloat16, dtype

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: use `flambeau.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
