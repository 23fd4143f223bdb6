"""Which library runs quantized ops: none, they are not built yet."""

from __future__ import annotations

engine = "none"
supported_engines: list[str] = ["none"]
