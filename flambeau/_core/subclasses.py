"""Classes with a `__torch_function__`, subclasses of `Tensor` above all: which are asked, how tensors become them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .modes import THREAD
from .slots import SLOTS
from .tensor import DIRECT_TYPES, PLAIN_TYPES, Tensor

_NEVER = frozenset({bool, int, float, complex, str, type(None)})
"""Types of arguments that override nothing."""


def has_override(values: Iterable[Any]) -> bool:
    """Whether one of `values` (or of the lists among them) has a `__torch_function__` of its own that is to be
    heeded, or a mode of this thread sees every function.
    """
    if not DIRECT_TYPES and THREAD.modes.functions:
        return True
    for value in values:
        kind = type(value)
        if kind in PLAIN_TYPES or kind in _NEVER:
            continue
        if (kind is list or kind is tuple) and all_plain(value):
            continue
        return any(True for _ in overriding(values))
    return False


_MANY = 8
"""So many values are looked at by one call sooner than one by one."""


def all_plain(values: Sequence[Any]) -> bool:
    """Whether `values` are nothing but tensors of the plain classes."""
    if len(values) > _MANY:
        return PLAIN_TYPES.issuperset(map(type, values))
    for value in values:  # noqa: SIM110  (quicker than a generator, on the path of every list of tensors)
        if type(value) not in PLAIN_TYPES:
            return False
    return True


def overriding(values: Iterable[Any]) -> Iterable[Any]:
    """The values whose class is to be asked: none of the users' classes while those are disabled."""
    disabled = THREAD.modes.overrides_disabled
    for value in values:
        kind = type(value)
        if kind in PLAIN_TYPES:
            continue
        if isinstance(value, (tuple, list)):  # those of fx are of classes of their own
            yield from overriding(value)
        elif (
            hasattr(kind, "__torch_function__")
            and kind.__torch_function__ is not disabled_torch_function
            and (not disabled or getattr(kind, "_has_no_other_ops", False))
        ):
            yield value


def users_overriding(values: Iterable[Any]) -> list[Any]:
    """The values that are to be asked to run a function that is no op.

    Sparse tensors and their like have a `__torch_function__` for the sake of ops alone: PyTorch's are plain tensors.
    """
    if THREAD.modes.overrides_disabled:
        return []
    return [each for each in overriding(values) if not hasattr(type(each), "_is_plain_to_users")]


def has_users_override(values: Iterable[Any]) -> bool:
    """Whether one of `values`, or a mode of this thread, is to be asked to run a function that is no op."""
    if not DIRECT_TYPES and THREAD.modes.functions:
        return True
    return bool(users_overriding(values))


def disabled_torch_function(*args: Any, **kwargs: Any) -> Any:
    """As a class's `__torch_function__`: its instances run ops as plain tensors do."""
    return NotImplemented


def retyped_like(original: Tensor, tensor: Tensor) -> Tensor:
    """`tensor` as an instance of the class of `original`, if that has a `__torch_function__` that is to be heeded."""
    return retype(tensor, type(original)) if any(True for _ in overriding((original,))) else tensor


def of_same_class(original: Tensor, result: Tensor) -> Tensor:
    """What a property gives: a tensor of the class of the one that was asked, if that is a user's."""
    if type(original) in PLAIN_TYPES or type(result) is not Tensor:
        return result
    return retyped_like(original, result)


def retype(tensor: Tensor, cls: type) -> Any:
    """The tensor as an instance of the subclass `cls`, at its place in the graph."""
    retyped: Any = object.__new__(cls)
    for slot in ("_array", "_kind", "_counter", "_requires_grad", "_grad_fn", "_output_nr", "_grad", "_view", "_extra"):
        setattr(retyped, slot, getattr(tensor, slot))
    if hasattr(cls, "__torch_dispatch__"):
        SLOTS.dispatch_by_class(retyped)
    return retyped
