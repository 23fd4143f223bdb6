"""Names for values: each its own, none that Python or the generated code needs for something else."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any

import flambeau

from .._core.device import device
from ..utils import _pytree as pytree
from . import _pytree as fx_pytree

CUSTOM_BUILTINS: dict[str, tuple[str, Any]] = {
    "inf": ("from math import inf", math.inf),
    "nan": ("from math import nan", math.nan),
    "NoneType": ("NoneType = type(None)", type(None)),
    "torch": ("import torch", flambeau),
    "device": ("from torch import device", device),
    "fx_pytree": ("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": ("import torch.utils._pytree as pytree", pytree),
}
"""What generated code may name without having been given it: the statement that imports it, and the object."""

_TAKEN: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in dir(builtins)},
    **dict.fromkeys(keyword.kwlist, object()),
    **{name: value for name, (_, value) in CUSTOM_BUILTINS.items()},
}
_NAME = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")
_LOWER_THEN_UPPER = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """`BatchNorm` as `batch_norm`."""
    return _LOWER_THEN_UPPER.sub(r"_\1", name).lower()


def _identifier(candidate: str) -> str:
    text = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
    return f"_{text}" if text[0].isdigit() else text


class _Namespace:
    """Unique names, and the objects that they are the names of."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that is still free; an object that has a name keeps it."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        match = _NAME.fullmatch(candidate)
        if match is None:
            candidate = _identifier(candidate)
            match = _NAME.fullmatch(candidate)
            assert match is not None, candidate
        base, suffix = match.groups()
        number = int(suffix) if suffix is not None else 0
        if suffix is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if candidate in _TAKEN and _TAKEN[candidate] is not obj:
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note whose name it is."""
        assert self._obj_to_name.setdefault(obj, name) is name, "the object has a name already"

    def _rename_object(self, obj: Any, name: str) -> None:
        assert obj in self._obj_to_name, f"{obj} has no name here"
        self._obj_to_name[obj] = name
        self._used_names.add(name)
