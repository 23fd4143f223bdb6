"""`GradScaler` as `torch.cpu.amp` and `torch.cuda.amp` have it: without the name of the device."""

from __future__ import annotations

import warnings
from typing import ClassVar

from .grad_scaler import GradScaler


class OlderGradScaler(GradScaler):
    """Deprecated: use `flambeau.amp.GradScaler(device, ...)`."""

    _device_type: ClassVar[str]

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        kind = self._device_type
        warnings.warn(
            f"`torch.{kind}.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('{kind}', "
            "args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
