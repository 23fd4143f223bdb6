"""Settings of the libraries behind kernels, under PyTorch's names: programs set them, on the CPU without effect."""

from __future__ import annotations

from . import cpu, cuda, cudnn, mkl, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mps", "openmp"]
