"""`functorch.einops`: `rearrange` in the notation of einops."""

from __future__ import annotations

from flambeau.func._rearrange import rearrange

__all__ = ["rearrange"]
