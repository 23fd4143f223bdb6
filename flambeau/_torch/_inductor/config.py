"""Settings of PyTorch's code generator: they can be made, and are kept."""

from __future__ import annotations

from flambeau._core.names.settings_module import settings

__getattr__, __dir__ = settings(__name__, "_inductor.config")
