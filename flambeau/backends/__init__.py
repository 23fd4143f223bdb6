"""Settings of the libraries behind kernels, under PyTorch's names. Programs set them; on the CPU they change nothing."""

from __future__ import annotations

from . import cuda, cudnn, mkl, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mps", "openmp"]
