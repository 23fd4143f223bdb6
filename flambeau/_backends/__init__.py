"""Kernels beyond NumPy's: generated code and vendors' libraries, behind functions on arrays."""
