"""`torch._dynamo.eval_frame`: what `torch.compile` gives for a module."""

from __future__ import annotations

from ..compiler._eager import OptimizedModule, disable

__all__ = ["OptimizedModule", "disable"]
