"""What this build is and what it was built for, under the names of `torch.version`."""

from __future__ import annotations

import flambeau

__all__ = ["PYTORCH", "__flambeau_version__", "__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

PYTORCH = "2.13.0"
"""The version of PyTorch whose behaviour this is."""
__flambeau_version__ = flambeau._RELEASE
__version__ = flambeau.__version__
debug = False
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
