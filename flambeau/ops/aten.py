"""The operators of `torch.ops.aten`: those that are only here, and the package's own functions under their names.

As in PyTorch, an op has its overloads as attributes: `aten.mm.default`, `aten.add.Tensor`.
"""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._dispatch import catalogue
from .._dispatch.registry import function_named, namespace
from . import _composed
from ._overloads import OpOverloadPacket

_only_here, __all__ = namespace("ops.aten")
_ELSEWHERE = ("", "nn.functional")


def __getattr__(name: str) -> Any:
    packet = globals()[name] = OpOverloadPacket(name, _find(name))
    return packet


def _find(name: str) -> Any:
    if name in ("_to_copy", "convolution_backward"):
        return getattr(_composed, name)
    for space in _ELSEWHERE:
        if name not in __all__ and name in catalogue.FUNCTIONS[space]:
            return function_named(space, name)
    if name not in __all__ and name in catalogue.METHODS:
        return getattr(Tensor, name)
    return _only_here(name)
