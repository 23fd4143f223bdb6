"""What keeps a hostile file from using more memory or time than its size justifies."""

from __future__ import annotations

import pickle
from typing import Any

_FREE_BYTES = 64 << 20
_COPIES = 16
_KEY_PARTS = 1000
_KEY_DEPTH = 20
_ATOMS = (str, int, float, bool, bytes, complex, type(None))


class Budget:
    """How many bytes a file may still make the reader copy: a few times its own size.

    Opcodes are cheap and a call can copy all that came before, so a small file could otherwise ask for any amount.
    """

    __slots__ = ("left",)

    def __init__(self, total: int) -> None:
        self.left = total

    @classmethod
    def for_input(cls, size: int) -> Budget:
        """The budget of an input of `size` bytes."""
        return cls(_FREE_BYTES + _COPIES * size)

    def spend(self, amount: int) -> None:
        """Take off `amount` bytes, or refuse."""
        self.left -= amount
        if self.left < 0:
            raise pickle.UnpicklingError(
                "the file asks for far more memory than it has content: it is corrupt or malicious"
            )


def check_hashable(key: Any) -> None:
    """Refuse keys whose hash would take for ever or overflow the stack, as those of deeply nested tuples do."""
    if type(key) in _ATOMS:
        return
    parts = 0
    level: list[Any] = [key]
    for _ in range(_KEY_DEPTH):
        level = [part for each in level if type(each) is tuple for part in each[: _KEY_PARTS + 1]]
        parts += len(level)
        if not level:
            return
        if parts > _KEY_PARTS:
            break
    raise pickle.UnpicklingError("a key or member is nested too deeply: the file is corrupt or malicious")
