"""`torch._dynamo.backends.debugging`: backends that run graphs as they stand, to find out which part is at fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._torch._functorch.compilers import boxed_nop

from .common import aot_autograd

__all__ = ["aot_eager", "boxed_nop", "eager"]


def eager(gm: Any, fake_tensor_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
    """The graph of a call, run as it stands."""
    found: Callable[..., Any] = gm.forward
    return found


aot_eager = aot_autograd(fw_compiler=boxed_nop)
"""The graphs of a call and of its derivative, run as they stand: `torch.compile(backend="aot_eager")`."""
