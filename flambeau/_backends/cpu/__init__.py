"""Kernels for the CPU: a file for each family of ops, with functions that take and return NumPy arrays.

Such a function returns None where it does not do what is asked: an unusual dtype, a layout, a size that would not pay.
The caller then takes the NumPy kernel, which does everything. The folders have the names of those of `cuda/`.
"""
