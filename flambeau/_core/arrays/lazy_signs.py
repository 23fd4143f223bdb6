"""Conjugates and negatives that are still to be taken: views that remember a sign, as `conj()` makes them.

Such a tensor has the memory of its base and a kind of its own, a `LazyKind`. No op has a prepared kernel for that kind,
so all of them take their long path, where `content` supplies the elements with their signs; ordinary tensors pay
nothing. Ops that only make windows keep the kind. What is stored in such a tensor gets its signs back by `settle`: to
conjugate or negate twice is to do nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tensor as tensor_module  # tensors, in turn, import this file
from ..backend import as_array
from ..device import device
from ..dtype import BOOL, LEGACY_NAMES, WIDE_TYPES, dtype
from ..geometry.layout import empty_like
from ..kind import FakeKind, Kind, kind_of
from ..modes import beside_the_ops
from .narrow import as_type, widened


class LazyKind(Kind):
    """A dtype on a device, where the elements are the conjugates (`conj`) or negatives (`neg`) of those in memory."""

    __slots__ = ("conj", "neg")

    def __init__(self, dtype: dtype, device: device, conj: bool, neg: bool) -> None:
        super().__init__(dtype, device)
        self.plain = kind_of(dtype, device)
        self.conj = conj
        self.neg = neg
        self.is_cpu = False  # what writes to the array at once must not
        self.indirect = True

    def __repr__(self) -> str:
        return f"LazyKind({self.dtype}, {self.device}, conj={self.conj}, neg={self.neg})"


class FakeLazyKind(LazyKind, FakeKind):
    """A dtype on the fake form of a device, with signs still to be taken: its tensors are `FakeTensor`s."""

    __slots__ = ()


_LAZY_KINDS: dict[tuple[Kind, bool, bool], LazyKind] = {}


def marked(kind: Kind, conj: bool, neg: bool) -> Kind:
    """The kind of the tensors of the dtype and device of `kind` whose elements have these signs still to be taken."""
    plain = kind.plain
    if not (conj or neg):
        return plain
    found = _LAZY_KINDS.get((plain, conj, neg))
    if found is None:
        made = FakeLazyKind if isinstance(plain, FakeKind) else LazyKind
        found = _LAZY_KINDS.setdefault((plain, conj, neg), made(plain.dtype, plain.device, conj, neg))
    return found


def is_conj(kind: Kind) -> bool:
    """Whether the conjugates of tensors of this kind are still to be taken."""
    return isinstance(kind, LazyKind) and kind.conj


def is_neg(kind: Kind) -> bool:
    """Whether the negatives of tensors of this kind are still to be taken."""
    return isinstance(kind, LazyKind) and kind.neg


def content(tensor: tensor_module.Tensor) -> Any:
    """An array of the elements: that of the tensor, or a copy with the signs that were still to be taken."""
    beside_the_ops()
    kind = tensor._kind
    return signed(tensor._array, kind) if isinstance(kind, LazyKind) else tensor._array


def every_element(tensor: Any) -> Any:
    """The content of a tensor, or of what a wrapper has inside, such as all examples of `vmap`: for checks."""
    return content(unwrapped(tensor))


def unwrapped(tensor: Any) -> Any:
    """The tensor inside a wrapper, through all levels; any other tensor itself."""
    while tensor._is_wrapper:
        tensor = tensor.value
    return tensor


def signed(array: Any, kind: Kind) -> Any:
    """A copy of `array` with the signs of `kind`; of a tensor without data the array itself."""
    if not isinstance(kind, LazyKind) or kind.dataless:
        return array
    _check_negatable(kind)
    narrow, array = array.dtype, widened(array)
    if kind.conj:
        array = np.conjugate(array, _place_for(array))
    if kind.neg:
        array = np.negative(array, _place_for(array))
    return as_type(array, narrow) if narrow in WIDE_TYPES else as_array(array)


def _place_for(array: Any) -> Any:
    """Where dimensions of size 1 keep their strides, which NumPy's own results do not; else None."""
    return empty_like(array, None, array.dtype) if array.size and 1 in array.shape else None


def settle(array: Any, kind: Kind) -> None:
    """After elements were written to `array` as they are: turn them into what a tensor of `kind` has in memory."""
    if isinstance(kind, LazyKind) and not kind.dataless:
        np.copyto(array, signed(array, kind))  # by way of a copy: see `neg` about np.negative in place


def overwrite(tensor: tensor_module.Tensor, elements: Any) -> None:
    """Overwrite the elements of a tensor, converted as NumPy does it."""
    np.copyto(tensor._array, elements, casting="unsafe")
    settle(tensor._array, tensor._kind)


def _check_negatable(kind: LazyKind) -> None:
    if kind.neg and kind.dtype.category == BOOL:
        raise NotImplementedError(f'"neg_cpu" not implemented for {LEGACY_NAMES[kind.dtype]!r}')
