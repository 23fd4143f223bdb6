"""`torch._library`: names of `torch.library` that libraries import from where PyTorch keeps them."""

from __future__ import annotations

from flambeau.library import triton_op, wrap_triton
from flambeau.ops._schema import infer_schema

__all__ = ["capture_triton", "infer_schema", "triton_op", "wrap_triton"]

capture_triton = wrap_triton
