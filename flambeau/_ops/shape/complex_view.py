"""Views of the same bytes as another dtype; the real and imaginary parts of complex tensors."""

from __future__ import annotations

from typing import Any

from ..._core.arrays.lazy_signs import is_conj, is_neg
from ..._core.dtype import LEGACY_NAMES, float16, float32, float64, from_numpy_dtype
from ..._core.dtype import dtype as DType
from ..._core.geometry.strided_windows import Geometry, restrided, span
from ..._core.kind import Kind
from ..._core.subclasses import of_same_class
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.axes import Last
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import export_method, public
from .conjugate import as_kind, view_conjugated, view_negated
from .parts import select
from .strided import as_strided

_PARTS = (float16, float32, float64)
"""The types of the parts of complex numbers."""


@primitive(None, view=True)
def _view_dtype(self: Array, dtype: Any) -> Array:
    wanted, item = dtype.numpy, self.itemsize
    if wanted.itemsize == item:
        return self.view(wanted)
    shape = (*self.shape[:-1], self.shape[-1] * item // wanted.itemsize)
    return restrided(self, shape, (*self.strides[:-1], wanted.itemsize), wanted)


def view_dtype(input: Tensor, dtype: Any) -> Tensor:
    """The bytes of `input` read as another dtype; the last dimension takes up a difference of element sizes."""
    if not isinstance(dtype, DType):
        raise TypeError(
            "view() received an invalid combination of arguments: expected a dtype or a size (ints), got "
            f"{type(dtype).__name__}"
        )
    for mark, words in ((is_conj, "conjugate view tensors"), (is_neg, "tensors with negative bit set")):
        if mark(input._kind):
            resolve = "resolve_conj" if mark is is_conj else "resolve_neg"
            raise RuntimeError(
                f"torch.Tensor.view is not supported for {words} when converting to a different dtype. Make a copy of "
                f"the elements first, with .{resolve}()"
            )
    old, new = input.itemsize, dtype.itemsize
    if old != new:
        _check_dtype_view(input, dtype, old, new)
    result: Tensor = _view_dtype(input, dtype)
    result._view = None  # no gradient passes: in the graph it is not a view
    return result


def _check_dtype_view(input: Tensor, dtype: DType, old: int, new: int) -> None:
    how = f"to view {LEGACY_NAMES[input.dtype]} as {LEGACY_NAMES[dtype]} (different element sizes)"
    if input._array.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {how}")
    strides = input.stride()
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {how}, but got {strides[-1]}")
    ratio = new // old
    if ratio <= 1:
        return
    size = input._array.shape[-1]
    if size % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {how}, but got {size}")
    if input.storage_offset() % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {how}, but got {input.storage_offset()}"
        )
    for position, step in enumerate(strides[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({position}) must be divisible by {ratio} {how}, but got {step}")


def as_pairs(grad: Tensor) -> Tensor:
    """The gradient of a real view of a complex tensor, as a complex tensor."""
    return view_as_complex(grad.contiguous())


@primitive("ViewAsRealBackward0", axes=Last(0), view=True, self=as_pairs)
def _view_as_real(self: Array) -> Array:
    real = from_numpy_dtype(self.dtype).to_real().numpy
    return restrided(self, (*self.shape, 2), (*self.strides, real.itemsize), real)


@public(method=False)
def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor as a real one, whose last dimension holds real and imaginary part; shares memory."""
    if not input._kind.dtype.is_complex:
        raise RuntimeError(f"view_as_real is only supported for complex tensors, got {input.dtype}")
    if is_conj(input._kind):
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors. Use resolve_conj() first, whose result does "
            "not share memory with the original; to change the original through a view, take view_as_real of it and "
            "negate the imaginary part."
        )
    return _view_as_real(input)


@primitive(
    "ViewAsComplexBackward0", axes=Last(1), view=True, self=lambda grad: view_as_real(grad.contiguous().resolve_conj())
)
def _view_as_complex(self: Array) -> Array:
    return restrided(self, self.shape[:-1], self.strides[:-1], from_numpy_dtype(self.dtype).to_complex().numpy)


def check_pairs(input: Tensor) -> None:
    """Refuse what is no tensor of pairs of real numbers, each pair in one place."""
    array = input._array
    if input._kind.dtype not in _PARTS:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{LEGACY_NAMES[input.dtype]}"
        )
    if array.ndim == 0 or array.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got shape {list(array.shape)}")
    if array.size == 0:
        return
    strides = input.stride()
    if strides[-1] != 1:
        raise RuntimeError(f"Tensor must have a last dimension with stride 1, got strides {list(strides)}")
    if any(step % 2 for step in strides[:-1]):
        raise RuntimeError(
            f"Tensor must have a stride divisible by 2 for all but last dimension, got strides {list(strides)}"
        )
    if input.storage_offset() % 2:
        raise RuntimeError(f"Tensor must have a storage_offset divisible by 2, got {input.storage_offset()}")


@public(method=False, autocast=on(cpu=FULL))
def view_as_complex(input: Tensor) -> Tensor:
    """A real tensor with a last dimension of size 2 as a complex one; shares memory."""
    check_pairs(input)
    return _view_as_complex(input)


@public(method=False)
def real(input: Tensor) -> Tensor:
    """The real part of a complex tensor, which shares its memory; a real tensor itself."""
    if not input._kind.dtype.is_complex:
        return input
    pairs = _view_as_real(view_conjugated(input) if is_conj(input._kind) else input)  # conjugates have the same
    return of_same_class(input, select(pairs, input._array.ndim, 0))


@public(method=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor; shares its memory."""
    if not input._kind.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if is_conj(input._kind):
        pairs = view_negated(_view_as_real(view_conjugated(input)))
    else:
        pairs = _view_as_real(input)
    return of_same_class(input, select(pairs, input._array.ndim, 1))


def _set_real(tensor: Tensor, value: Any) -> None:
    real(tensor).copy_(value)


def _set_imag(tensor: Tensor, value: Any) -> None:
    imag(tensor).copy_(value)


export_method(property(real, _set_real, doc=real.__doc__), "real")
export_method(property(imag, _set_imag, doc=imag.__doc__), "imag")


def window_of(tensor: Tensor, kind: Kind, geometry: Geometry, signs_last: bool = False) -> Tensor:
    """`as_strided`, where the window may also be one on the real numbers in a complex tensor, or the reverse, and its
    elements may have other signs; `signs_last`: that was the last step in making it.
    """
    if tensor._kind is kind:
        return as_strided(tensor, *geometry)
    size, stride, offset = geometry
    if tensor._kind.dtype is not kind.dtype:
        tensor = as_kind(tensor, tensor._kind.plain)
        if tensor._kind.dtype.is_complex:
            tensor = _view_as_real(tensor)
        else:
            tensor = _view_as_complex(as_strided(tensor, (span(size, stride, 1), 2), (2, 1), 2 * offset))
    if signs_last:
        return as_kind(_on_whole_or_part(tensor, geometry), kind)
    return _on_whole_or_part(as_kind(tensor, kind), geometry)


def _on_whole_or_part(tensor: Tensor, geometry: Geometry) -> Tensor:
    """`as_strided`; the tensor itself if that would be the same window."""
    if (tuple(tensor._array.shape), tensor.stride(), tensor.storage_offset()) == geometry:
        return tensor
    return as_strided(tensor, *geometry)
