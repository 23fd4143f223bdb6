"""Settings of PyTorch's compiler: they can be made, and are kept. None changes what a program does."""

from __future__ import annotations

from .._core.names.settings_module import settings

__getattr__, __dir__ = settings(__name__, "compiler.config", reorderable_logging_functions=set())
