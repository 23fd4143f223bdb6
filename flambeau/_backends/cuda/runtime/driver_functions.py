"""Functions of CUDA's driver that NVIDIA's Python packages do not wrap, by `ctypes`."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any


class DriverFunctions:
    """Functions of the driver by their names and the types of their arguments. `needs` says which drivers have them."""

    def __init__(self, signatures: Mapping[str, tuple[Any, ...]], needs: str) -> None:
        self._signatures = signatures
        self._needs = needs
        self._found: dict[str, Any] = {}

    def status_of(self, name: str, *arguments: Any) -> int:
        """Call a function; returns what it says, 0 for success."""
        function = self._found.get(name)
        if function is None:
            function = getattr(ctypes.CDLL("libcuda.so.1"), name, None)
            if function is None:
                raise RuntimeError(f"the driver of this GPU has no {name}: {self._needs}")
            function.argtypes = self._signatures[name]
            self._found[name] = function
        return int(function(*arguments))

    def __call__(self, name: str, *arguments: Any) -> None:
        status = self.status_of(name, *arguments)
        if status:
            raise RuntimeError(f"CUDA error {status}: {name} failed")
