"""Names of the dtypes, for parametrization: a scenario takes `getattr(T, name)`."""

from __future__ import annotations

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
INTEGERS = UNSIGNED + SIGNED
ALL = ("bool", *INTEGERS, *FLOAT8, *FLOATS, "complex32", *COMPLEXES)

# PyTorch has most kernels for these only: the others are for storage.
COMMON = ("bool", "uint8", *SIGNED, *FLOATS, *COMPLEXES)

# One of each kind, where the full product would only repeat itself.
REPRESENTATIVE = ("bool", "uint8", "int32", "int64", "bfloat16", "float32", "float64", "complex64")
