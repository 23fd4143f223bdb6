"""The operators that programs have made, by namespace: `torch.ops.mine.double`."""

from __future__ import annotations

from typing import Any

from .._dispatch.overloads import OpOverloadPacket

OPERATORS: dict[str, dict[str, Any]] = {}


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = OPERATORS[self._name].get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        packet = self.__dict__[name] = OpOverloadPacket(self._name, name, found)
        return packet
