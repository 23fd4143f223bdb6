"""Conjugates and negatives as views that remember what is still to be done, and what makes plain tensors of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays import lazy_signs
from ..._core.arrays.lazy_signs import marked
from ..._core.backend import backend_of_array
from ..._core.geometry.layout import empty_array, is_plain, strides_like
from ..._core.kind import Kind
from ..._core.tensor import Tensor
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.dispatch import Array, Formula, Primitive, primitive, view_of
from ..._dispatch.public.registry import public
from ..tensor.copy import clone


class _SignView(Primitive[..., Tensor]):
    """A view of the same memory in which one more sign, or one less, is still to be taken."""

    axes = ELEMENTS

    def __init__(self, name: str, node: str, conj: bool, derivative: Formula) -> None:
        def kernel(self: Array) -> Array:
            return self.view()

        kernel.__name__ = name
        super().__init__(kernel, node, {"self": derivative}, None, True)
        self._conj = conj

    def _wrap(self, array: Any, source: Tensor, modes: Any, many: bool) -> Tensor:
        return view_of(source, array, self.kind_after(source._kind))

    def kind_after(self, kind: Kind) -> Kind:
        """The kind of the view of a tensor of `kind`."""
        return marked(kind, lazy_signs.is_conj(kind) != self._conj, lazy_signs.is_neg(kind) == self._conj)


view_conjugated = _SignView("_conj", "ConjBackward0", True, lambda grad: grad.conj())
view_negated = _SignView("_neg_view", "NegViewBackward0", False, lambda grad: grad.neg())


@public()
def _conj(input: Tensor) -> Tensor:
    """The complex conjugate of a complex tensor, as a view."""
    if not input._kind.dtype.is_complex:
        raise RuntimeError(f"_conj() is for complex tensors; this one is {input.dtype}. Use conj(), which takes any")
    return view_conjugated(input)


@public()
def conj(input: Tensor) -> Tensor:
    """The complex conjugate of a complex tensor, as a view on its memory; a real tensor itself."""
    return view_conjugated(input) if input._kind.dtype.is_complex else input


@public()
def _neg_view(input: Tensor) -> Tensor:
    """The negative of a tensor, as a view on its memory."""
    return view_negated(input)


def _conjugated(array: Any) -> Any:
    if not np.iscomplexobj(array):
        return array.copy()
    if is_plain(array):
        return np.conjugate(array)
    return np.conjugate(
        array, empty_array(array.shape, strides_like(array, None), array.dtype, backend_of_array(array))
    )


@primitive("ConjPhysicalBackward0", axes=ELEMENTS, self=lambda grad: grad.conj_physical())
def _conjugate(self: Array) -> Array:
    return _conjugated(self)


@primitive("ConjPhysicalBackward1", axes=ELEMENTS, self=lambda grad: grad.conj_physical())
def _conjugate_in_place(self: Array) -> Array:
    return _conjugated(self)


@public(out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate in memory of its own; a real tensor itself."""
    return _conjugate(input) if input._kind.dtype.is_complex else input


@public()
def conj_physical_(input: Tensor) -> Tensor:
    """Conjugate every element in place."""
    return run_inplace(_conjugate_in_place, "conj_physical", input, (), {})


@public()
def _conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate in memory of its own."""
    return _conjugate(input)


@public()
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself; if its conjugate is still to be taken, a copy of its elements as they are."""
    return clone(input) if lazy_signs.is_conj(input._kind) else input


@public()
def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself; if its negative is still to be taken, a copy of its elements as they are."""
    return clone(input) if lazy_signs.is_neg(input._kind) else input


@public()
def is_conj(input: Tensor) -> bool:
    """Whether the conjugate of what is in memory is still to be taken."""
    return lazy_signs.is_conj(input._kind)


@public()
def is_neg(input: Tensor) -> bool:
    """Whether the negative of what is in memory is still to be taken."""
    return lazy_signs.is_neg(input._kind)


def as_kind(tensor: Tensor, kind: Kind) -> Tensor:
    """A view of a tensor of the same dtype in which the signs of `kind` are still to be taken."""
    if lazy_signs.is_conj(tensor._kind) != lazy_signs.is_conj(kind):
        tensor = view_conjugated(tensor)
    if lazy_signs.is_neg(tensor._kind) != lazy_signs.is_neg(kind):
        tensor = view_negated(tensor)
    return tensor
