"""Kernels of products: matrices, attention, recurrent layers."""
