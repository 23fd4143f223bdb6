"""Special functions, under the names of `torch.special`."""

from __future__ import annotations

from ._dispatch.public.registry import namespace

__getattr__, __all__, __dir__ = namespace("special")
