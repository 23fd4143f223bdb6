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


def watched_by_nobody(*values: Any) -> bool:
    """The same, where the tensors may be of any dtype whose arrays kernels can read."""
    modes = THREAD.modes
    if modes.grad or not modes.plain:
        return False
    for each in values:
        if isinstance(each, Tensor) and (type(each) not in PLAIN_TYPES or not each._kind.is_cpu or each._kind.indirect):
            return False
    return True


def unseen(first: Any, *others: Any) -> bool:
    """Whether an op of these tensors, of which the first alone has a derivative, is recorded and watched by nobody."""
    modes = THREAD.modes
    if not modes.plain or (modes.grad and first.requires_grad):
        return False
    for each in (first, *others):
        if each is not None and (type(each) not in PLAIN_TYPES or not each._kind.is_cpu or each._kind.indirect):
            return False
    return True


def on_arrays(formula: Callable[..., Any], fused: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Let a joint formula see arrays where nothing is recorded: it is written so that tensors and arrays will do.

    The derivative of a normalisation is a dozen small steps. In an ordinary backward pass, where the first result alone
    has a gradient, nobody asks for their history. There `fused` has the first word, for all floating-point dtypes: it
    is called like the formula, but with the one gradient, and returns None where it has no kernel.
    """

    @functools.wraps(formula)
    def run(grads: list[Any], needed: tuple[bool, ...], *saved: Any) -> Any:
        grad = grads[0]
        if grad is None or any(each is not None for each in grads[1:]) or not watched_by_nobody(grad, *saved):
            return formula(grads, needed, *saved)
        arrays = [_array_of(each) for each in saved]
        found = None if fused is None else fused(grad._array, needed, *arrays)
        if found is None:
            if not unrecorded(grad, *saved):
                return formula(grads, needed, *saved)
            found = formula([grad._array, *grads[1:]], needed, *arrays)
        return [None if each is None else fresh(each, grad) for each in found]

    return run


def with_fused(fused: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`on_arrays` as a decorator with a fused kernel."""
    return lambda formula: on_arrays(formula, fused)


def _array_of(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value
