"""The choices that `fully_shard` leaves to its caller: dtypes, and where parameters rest."""

from __future__ import annotations

from dataclasses import dataclass

from ..._core.dtype import dtype

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which dtypes parameters are gathered and computed with, gradients added up, and results given back.

    Args:
        param_dtype (dtype, optional): the dtype in which parameters are computed with; None keeps theirs.
        reduce_dtype (dtype, optional): the dtype in which gradients are added up; None takes that of the computation.
        output_dtype (dtype, optional): the dtype of results; None keeps theirs.
        cast_forward_inputs (bool): whether floating-point inputs are cast too. Default: `True`.

    Example:
        >>> dist.fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16).param_dtype
        torch.bfloat16
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters rest where they are computed with.

    Example:
        >>> dist.fsdp.OffloadPolicy()
        OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters rest in the memory of the host. It is for models on an accelerator.

    Args:
        pin_memory (bool): whether that memory is page-locked. Default: `True`.

    Example:
        >>> dist.fsdp.CPUOffloadPolicy(pin_memory=False)
        CPUOffloadPolicy(pin_memory=False)
    """

    pin_memory: bool = True
