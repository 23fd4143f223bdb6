"""The operators of `torch.ops.aten`: those that are only here, and the package's own functions under their names.

As in PyTorch, `aten.mm.default` is the same as `aten.mm`.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import catalogue
from .._dispatch.registry import function_named, namespace

_only_here, __all__ = namespace("ops.aten")
_ELSEWHERE = ("", "nn.functional")


def __getattr__(name: str) -> Any:
    function = _find(name)
    function.default = function
    return function


def _find(name: str) -> Any:
    for space in _ELSEWHERE:
        if name not in __all__ and name in catalogue.FUNCTIONS[space]:
            return function_named(space, name)
    return _only_here(name)
