"""Derivatives on arrays: the shorter way of an ordinary backward pass, whose own steps nobody will differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..._core.device import CPU
from ..._core.dtype import float32, float64
from ..._core.kind import Kind, kind_of
from ..._core.modes import THREAD
from ..._core.tensor import PLAIN_TYPES, Tensor

_IN_FULL = (kind_of(float32, CPU), kind_of(float64, CPU))


Formula = TypeVar("Formula", bound=Callable[..., Any])


def on_arrays(shorter: Callable[..., Any]) -> Callable[[Formula], Formula]:
    """Give a formula its form on arrays: `shorter` has its parameters, arrays in place of tensors, and returns one.

    A backward pass for which `unrecorded` holds runs it, without making tensors of what was saved. All tensors are then
    of one kind. None: the formula itself has to run.
    """

    def give(formula: Formula) -> Formula:
        vars(formula)["on_arrays"] = shorter
        return formula

    return give


def unrecorded(first: Any, *others: Any) -> bool:
    """Whether what is computed from these values is watched by nobody, and the tensors among them are plain arrays."""
    modes = THREAD.modes
    if modes.grad or not modes.plain or modes.autocast.elementwise:
        return False
    if type(first) in PLAIN_TYPES:
        if not TAKEN[first._kind]:
            return False
    elif isinstance(first, Tensor):
        return False
    for each in others:
        if type(each) in PLAIN_TYPES:
            if not TAKEN[each._kind]:
                return False
        elif isinstance(each, Tensor):
            return False
    return True


class _Taken(dict[Kind, bool]):
    def __missing__(self, kind: Kind) -> bool:
        real = kind.dtype.is_floating_point and not kind.indirect  # conjugates are the ops' affair
        taken = self[kind] = real and (kind in _IN_FULL or kind.backend.costs_per_call)
        return taken


TAKEN = _Taken()
"""Whether functions on arrays of a kind round as ops do: in single and double precision, and on devices."""
