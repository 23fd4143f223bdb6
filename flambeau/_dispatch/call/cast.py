"""The call that casts a gradient, without the steps that other calls of the op need."""

from __future__ import annotations

from typing import Any

from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor


def cast(gradient: Tensor, kind: Kind) -> Tensor:
    """A gradient in the dtype of `kind`, on the same device: at once by the backend's kernel where nobody looks on.

    Under autocast every second gradient is cast: of each parameter, and wherever precisions meet.
    """
    op: Any = SLOTS.to_copy
    modes, given = THREAD.modes, gradient._kind
    run = given.tries.get(op)  # there once the op has a function of its own
    if run is not None and kind in modes.direct and not modes.grad and not kind.indirect:
        made = run(gradient._array, kind.dtype, None)
        if type(made) is kind.backend.array_class:
            return Tensor._from_parts((made, kind, None if modes.inference else [0, None]))
    result: Tensor = op(gradient, kind.dtype, None)
    return result
