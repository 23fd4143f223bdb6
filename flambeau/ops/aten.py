"""The operators of `torch.ops.aten`: those that are only here, and the package's own functions under their names.

As in PyTorch, an op has its overloads as attributes: `aten.mm.default`, `aten.add.Tensor`. They are what
`__torch_dispatch__` is given.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.public.overloads import packet
from .._dispatch.public.schemas import operators_of


def __getattr__(name: str) -> Any:
    if name not in operators_of("aten"):
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return packet("aten", name)


def __dir__() -> list[str]:
    return sorted(operators_of("aten"))
