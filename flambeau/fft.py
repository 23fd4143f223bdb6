"""Discrete Fourier transforms, under the names of `torch.fft`."""

from __future__ import annotations

from ._core.tensor import Tensor
from ._dispatch.public.registry import namespace

__getattr__, __all__, __dir__ = namespace("fft")
__all__ += ["Tensor"]
