"""The classes of named results, as in `torch.return_types.max`."""

from __future__ import annotations

from typing import Any

from ._dispatch.public.registry import load_all
from ._dispatch.public.return_types import RETURN_TYPES, return_type


def __getattr__(name: str) -> Any:
    load_all()  # the families define them
    if name == "all_return_types":
        return [each for _, each in sorted(RETURN_TYPES.items())]
    if name not in RETURN_TYPES and name.endswith("_out") and name[:-4] in RETURN_TYPES:
        base: Any = RETURN_TYPES[name[:-4]]  # what `out=` gives has a class of its own in PyTorch
        return return_type(name, base._fields)
    if name not in RETURN_TYPES:
        raise AttributeError(f"module 'flambeau.return_types' has no attribute {name!r}")
    return RETURN_TYPES[name]


def pytree_register_structseq(cls: type) -> None:
    """Let nests know a class of named results: they know all of them."""
