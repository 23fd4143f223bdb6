"""The operators of `torch.ops.aten`: those that are only here, and the package's own functions under their names.

As in PyTorch, an op has its overloads as attributes: `aten.mm.default`, `aten.add.Tensor`. They are what
`__torch_dispatch__` is given.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.public.aten_names import OF_TENSORS, OF_TENSORS_OR_NUMBERS, OTHERS, PRIVATE, SAME
from .._dispatch.public.overloads import COMPOSED, packet, public_function
from .._dispatch.public.registry import namespace
from . import _composed

_find, __all__, _list = namespace("ops.aten")

COMPOSED.update(
    {n: each for n, each in vars(_composed).items() if getattr(each, "__module__", "") == _composed.__name__}
)

_OPERATORS = {*SAME, *OF_TENSORS, *OF_TENSORS_OR_NUMBERS, *(f"_{name}" for name in PRIVATE)} | {
    entry.partition(".")[0] for each in OTHERS.values() for entry in ((each,) if isinstance(each, str) else each)
}


def __getattr__(name: str) -> Any:
    if name.startswith("__") or (name not in _OPERATORS and public_function(name, None) is None):
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return packet("aten", name)
