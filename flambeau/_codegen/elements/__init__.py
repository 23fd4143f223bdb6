"""Kernels that compute, move or pick elements one by one."""
