"""`autocast` and the decorators of custom functions for CUDA under their older names."""

from __future__ import annotations

import warnings
from typing import Any

from ... import amp
from ..._core.dtype import dtype, float16

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """Deprecated: use `flambeau.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def _warn(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}(args..., device_type='cuda')` "
        "instead.",
        FutureWarning,
        stacklevel=3,
    )


def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
    """Deprecated: use `flambeau.amp.custom_fwd(..., device_type="cuda")`."""
    _warn("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Deprecated: use `flambeau.amp.custom_bwd(..., device_type="cuda")`."""
    _warn("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
