"""Kernels of random numbers, bit for bit PyTorch's."""
