"""Which library runs quantized ops: programs choose one of PyTorch's, and the same kernels run."""

from __future__ import annotations

from typing import Any

from ._modules import settings_class

engine = "x86"
supported_engines = ["qnnpack", "onednn", "x86", "fbgemm"]


def _check(name: str, value: Any) -> None:
    if name == "engine" and value not in (*supported_engines, "none"):
        raise RuntimeError(f"{value} is not a valid value for quantized engine: there are {supported_engines}")


settings_class("QuantizedEngine", __name__, "engine supported_engines", _check)
