"""PyTorch as the tests see it: the specification (2.13), an older one, or none."""

from __future__ import annotations

import platform
import sys
from typing import Any

import pytest

pytorch: Any
try:
    import torch as pytorch
except ModuleNotFoundError:  # there is none for this Python: what needs it is skipped, see tests/conftest.py
    pytorch = None

ON_X86 = platform.machine().lower() in ("x86_64", "amd64")
WITH_CUDA = pytorch is not None and pytorch.version.cuda is not None
HAS_MKL = pytorch is not None and pytorch.backends.mkl.is_available()


def _forget_seeds_of_absent_devices() -> None:
    """PyTorch notes the call stack of each `manual_seed`, once for each kind of device that it might start later: a
    millisecond in every comparison.
    """
    for name in ("cuda.random", "xpu.random", "mtia"):
        module = sys.modules.get(f"torch.{name}")
        if hasattr(module, "_lazy_call") and not getattr(pytorch, name.partition(".")[0]).is_available():
            module._lazy_call = lambda *args, **kwargs: None


if pytorch is not None:
    _forget_seeds_of_absent_devices()

needs_pytorch = pytest.mark.skipif(pytorch is None, reason="needs PyTorch, which is not installed")


def older_than(*version: int) -> bool:
    """Whether the PyTorch at hand came before a version such as (2, 13)."""
    return pytorch is not None and tuple(map(int, pytorch.__version__.split(".")[:2])) < version
