"""What this build is and what it was built for, under the names of `torch.version`."""

from __future__ import annotations

from flambeau import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

debug = False
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
