"""The choices that `fully_shard` leaves to its caller: dtypes, and where parameters rest."""

from __future__ import annotations

from dataclasses import dataclass

from ..._core.dtype import dtype

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which dtypes parameters are gathered and computed with, gradients added up, and results given back."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters rest where they are computed with."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters rest in the memory of the host. It is for models on an accelerator."""

    pin_memory: bool = True
