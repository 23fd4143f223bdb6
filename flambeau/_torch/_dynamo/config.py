"""Settings of PyTorch's compiler: they can be made, and are kept."""

from __future__ import annotations

from flambeau._core.names.settings_module import settings

__getattr__, __dir__ = settings(__name__, "_dynamo.config", log_level=None, reorderable_logging_functions=set())
