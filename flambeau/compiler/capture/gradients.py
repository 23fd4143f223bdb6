"""The gradients that tensors have when a call begins: nobody holds them longer than the tensors do.

What a call makes may need their memory. So a recording lets them go as soon as somebody has forgotten them, and the
program does the same (`emit/text.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Container

from ..._core.tensor import Tensor

Tensors = dict[int, tuple[Tensor, str]]
"""Tensors by the identity of their arrays, and the expressions that find these again."""


def _references_of_a_variable() -> int:
    only_here = object()
    return sys.getrefcount(only_here)


_HELD_HERE = 2 + _references_of_a_variable()
"""References to a gradient that nobody else knows: of the tensors, of the recorder, and as counted for a variable."""


class Gradients:
    """Whose gradients a walk over Python state has found."""

    def __init__(self) -> None:
        self._owners: dict[int, Tensor] = {}
        """By the identity of the gradients' arrays."""

    def add(self, owner: Tensor, grad: Tensor) -> None:
        """Take note of a tensor that has a gradient."""
        self._owners[id(grad._array)] = owner

    def let_go(self, tensors: Tensors, used: Container[int], all_of_them: bool = False) -> list[Tensor]:
        """Forget those of the tensors that are nobody's gradient any more, but for arrays that are `used`, by identity.

        Returns the tensors that they were the gradients of. Whoever forgets gradients begins with the first as a rule:
        where that is still there, no others are looked at, unless it is `all_of_them`. Nor where somebody has kept it:
        it may come again.
        """
        gone: list[tuple[int, Tensor]] = []
        for key, owner in self._owners.items():
            grad = tensors[key][0]
            if owner._grad is not grad and (all_of_them or sys.getrefcount(grad) <= _HELD_HERE):
                gone.append((key, owner))
            elif not all_of_them:
                break
        for key, _ in gone:
            del self._owners[key]
            if key not in used:
                del tensors[key]
        return [owner for _, owner in gone]
