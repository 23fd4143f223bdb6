"""Window functions under the name of PyTorch's file."""

from __future__ import annotations

from ..._dispatch.public.registry import namespace

__getattr__, __all__, __dir__ = namespace("signal.windows", __name__)
