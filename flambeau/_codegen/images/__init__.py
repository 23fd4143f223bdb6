"""Kernels of images: convolutions, pooling, samples of grids."""
