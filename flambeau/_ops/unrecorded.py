"""Derivatives on arrays: the shorter way of an ordinary backward pass, whose own steps nobody will differentiate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.device import CPU
from .._core.dtype import float32, float64
from .._core.kind import kind_of
from .._core.modes import THREAD
from .._core.tensor import PLAIN_TYPES, Tensor
from .dispatch import fresh

_KINDS = (kind_of(float32, CPU), kind_of(float64, CPU))


def unrecorded(*values: Any) -> bool:
    """Whether what is computed from `values` is watched by nobody, and the tensors among them are plain arrays."""
    modes = THREAD.modes
    if modes.grad or not modes.plain:
        return False
    for each in values:
        if isinstance(each, Tensor) and (type(each) not in PLAIN_TYPES or each._kind not in _KINDS):
            return False
    return True


def on_arrays(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Let a joint formula see arrays where nothing is recorded: it is written so that tensors and arrays will do.

    The derivative of a normalisation is a dozen small steps. In an ordinary backward pass, where the first result alone
    has a gradient, nobody asks for their history.
    """

    @functools.wraps(formula)
    def run(grads: list[Any], needed: tuple[bool, ...], *saved: Any) -> Any:
        grad = grads[0]
        if grad is None or any(each is not None for each in grads[1:]) or not unrecorded(grad, *saved):
            return formula(grads, needed, *saved)
        found = formula([grad._array, *grads[1:]], needed, *[_array_of(each) for each in saved])
        return [None if each is None else fresh(each, grad) for each in found]

    return run


def _array_of(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value
