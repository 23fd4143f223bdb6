"""Which library runs quantized ops: programs choose one of PyTorch's; the same kernels run, and round as it does."""

from __future__ import annotations

from typing import Any

from .._core.quantized import ENGINE
from ._modules import settings_class

engine = "x86"
supported_engines = ["qnnpack", "onednn", "x86", "fbgemm"]


def _take_effect(name: str, value: Any) -> None:
    if name == "engine":
        if value not in (*supported_engines, "none"):
            raise RuntimeError(f"{value} is not a valid value for quantized engine: there are {supported_engines}")
        ENGINE.is_for_phones = value == "qnnpack"


settings_class("QuantizedEngine", __name__, "engine supported_engines", _take_effect)
