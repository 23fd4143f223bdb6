"""`GradScaler` under its older name."""

from __future__ import annotations

from ...amp._older_scaler import OlderGradScaler

__all__ = ["GradScaler"]


class GradScaler(OlderGradScaler):
    """Deprecated: use `flambeau.amp.GradScaler("cuda", ...)`."""

    _device_type = "cuda"
