"""Gradients of weights whose dtype is another one than theirs, cast together.

Under autocast every weight of a product gets a gradient of 16 bits. On a device where a call costs more than what it
computes, they wait until there are many, and until somebody could look at them: a hook, a function of the user's, the
end of the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

from .._core.dtype import bfloat16, float16, float32
from .._core.kind import Kind
from .._core.modes import THREAD
from .._core.slots import SLOTS
from .._core.tensor import Tensor

_MOST = 120
_MOST_ELEMENTS = 1 << 24
"""So many may wait: their memory could be used again."""
_HALVES = (float16, bfloat16)

Reach = Callable[[Sequence[Tensor], Sequence[Tensor]], None]
"""Gives leaves their gradients, which nobody else has."""


class _MayWait(dict[tuple[Kind, Kind], bool]):
    def __missing__(self, kinds: tuple[Kind, Kind]) -> bool:
        given, wanted = kinds
        may = self[kinds] = (
            given.dtype in _HALVES
            and wanted.dtype is float32
            and given.device is wanted.device
            and not (given.indirect or wanted.indirect)
        )
        return may


_MAY_WAIT = _MayWait()
"""By the kinds of a gradient and of its leaf whether the gradient may be cast later."""


class LateCasts:
    """The gradients that wait in one backward pass."""

    __slots__ = ("_elements", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[Tensor, Tensor]] = []
        self._elements = 0

    def takes(self, leaf: Tensor, gradient: Tensor, reach: Reach) -> bool:
        """Whether a gradient waits from now on, which is the only one of a leaf without hooks."""
        if not _MAY_WAIT[gradient._kind, leaf._kind] or not leaf._requires_grad or leaf._grad_fn is not None:
            return False
        array, model = gradient._array, leaf._array
        if array.shape != model.shape or not (array.flags.c_contiguous and model.flags.c_contiguous):
            return False
        self.waiting.append((leaf, gradient))
        self._elements += array.size
        if len(self.waiting) >= _MOST or self._elements >= _MOST_ELEMENTS:
            self.finish(reach)
        return True

    def finish(self, reach: Reach) -> None:
        """Give all of them to their leaves."""
        waiting, self.waiting, self._elements = self.waiting, [], 0
        by_kind: dict[tuple[Kind, Kind], list[tuple[Tensor, Tensor]]] = {}
        for leaf, gradient in waiting:
            by_kind.setdefault((gradient._kind, leaf._kind), []).append((leaf, gradient))
        for (_, wanted), pairs in by_kind.items():
            reach([leaf for leaf, _ in pairs], _cast([each for _, each in pairs], wanted))


def _cast(gradients: Sequence[Tensor], wanted: Kind) -> list[Tensor]:
    op: Any = SLOTS.to_copy
    modes = THREAD.modes
    watcher = modes.watcher
    start = 0 if watcher is None else perf_counter_ns()
    each_alone = getattr(wanted.backend.functions["multi"], "cast_each", None)
    arrays = None if each_alone is None else each_alone([each._array for each in gradients], wanted.dtype.numpy)
    if arrays is None:
        return [op(each, wanted.dtype, None) for each in gradients]
    made = [Tensor._from_parts((each, wanted, None if modes.inference else [0, None])) for each in arrays]
    if watcher is not None:
        for gradient, result in zip(gradients, made, strict=True):
            watcher.ran(op, (gradient, wanted.dtype, None), result, start, perf_counter_ns())
    return made
