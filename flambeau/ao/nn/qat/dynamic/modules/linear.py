"""A linear layer whose weight is rounded, for inputs that are quantized as they come."""

from __future__ import annotations

from typing import Any

from ...modules import linear

__all__ = ["Linear"]


class Linear(linear.Linear):
    """The layer of `ao.nn.qat`; its configuration must say that inputs are quantized as they come."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        watch = qconfig.activation()
        if not getattr(getattr(watch, "activation_post_process", watch), "is_dynamic", False):
            raise ValueError("Dynamic QAT requires a memoryless observer. This means a MovingAverage observer with averaging constant equal to 1")  # noqa: E501  # fmt: skip
