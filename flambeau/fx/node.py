"""`torch.fx.node`: not built yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).elsewhere("Node map_arg has_side_effect", "fx").parts()

Target = Callable[..., Any] | str
