"""Names of the dtypes, for parametrization: a scenario takes `getattr(T, name)`."""

from __future__ import annotations

from typing import Any

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
INTEGERS = UNSIGNED + SIGNED
ALL = ("bool", *INTEGERS, *FLOATS, *COMPLEXES)

# PyTorch has most kernels for these only: uint16, uint32 and uint64 are for storage.
COMMON = ("bool", "uint8", *SIGNED, *FLOATS, *COMPLEXES)

# One of each kind, where the full product would only repeat itself.
REPRESENTATIVE = ("bool", "uint8", "int32", "int64", "bfloat16", "float32", "float64", "complex64")


def widened(dtype: Any) -> str:
    """The name of `dtype`, with complex64 for complex32: Flambeau has no complex32, float16 becomes complex64."""
    return str(dtype).replace("complex32", "complex64")
