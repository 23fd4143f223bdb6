"""What programs ask and set about CUDA's libraries."""

from __future__ import annotations

from types import SimpleNamespace


def is_built() -> bool:
    """Whether this build has kernels for CUDA."""
    return False


matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
)
