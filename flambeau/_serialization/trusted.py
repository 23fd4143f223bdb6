"""Python's own pickle for files that the user trusts, with PyTorch's names meaning Flambeau's objects."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from .names import object_named


class _Window(io.RawIOBase):
    """A buffer as the file that `pickle` wants, from a position on."""

    def __init__(self, data: Any, position: int) -> None:
        self.data = data
        self.position = position

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        end = len(self.data) if size is None or size < 0 else self.position + size
        piece: bytes = self.data[self.position : end]
        self.position += len(piece)
        return piece

    def readinto(self, buffer: Any) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readline(self, size: int | None = -1) -> bytes:
        end = self.data.find(b"\n", self.position) + 1
        return self.read((end or len(self.data)) - self.position)


class TrustedMachine:
    """The counterpart of `unpickler.Machine`: the same interface, and every global allowed."""

    def __init__(
        self,
        data: Any,
        persistent_load: Callable[[Any], Any] | None = None,
        *,
        position: int = 0,
        pickle_module: Any = pickle,
        **options: Any,
    ) -> None:
        self.window = _Window(data, position)
        self.options = options

        class Unpickler(pickle_module.Unpickler):  # type: ignore[misc]  # the user gives the module
            def find_class(self, module: str, name: str) -> Any:
                if module == "torch" or module.startswith("torch."):
                    return object_named(module, name)
                return super().find_class(module, name)

            def persistent_load(self, saved_id: Any) -> Any:
                if persistent_load is None:
                    raise pickle.UnpicklingError("a persistent id where none can be: the file is corrupt")
                return persistent_load(saved_id)

        self.unpickler = Unpickler

    @property
    def position(self) -> int:
        return self.window.position

    def load(self) -> Any:
        """The object of the next pickle; afterwards `position` is behind it."""
        return self.unpickler(self.window, **self.options).load()
