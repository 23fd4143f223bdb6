"""Products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import joint_shape
from ..._core.backend import as_array, is_of_host
from ..._core.dtype import BOOL, C_NAMES, FLOAT, LEGACY_NAMES, float32, from_numpy_dtype
from ..._core.modes import THREAD, Ruled
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._dispatch.arguments.autocast_rules import DEVICE_TYPES, LOWER, RULED, WIDEST, on
from ..._dispatch.arguments.scalar import scaling
from ..._dispatch.axes import Along
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.array_derivatives import on_arrays
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import CASTING, explain, write_out
from ..._dispatch.public.registry import export_method, public
from ..pointwise.binary import conj, mul
from ..shape.view import (
    _contiguous_clone,
    _expand,
    _t,
    _transpose,
    _unsafe_view,
    _unsqueeze,
    expanded_shape,
    reshaped,
)
from .batched import product_of_batches
from .over_samples import samples_product
from .products import array_dot, integer_product

_NUMBERS = frozenset(np.dtype(each).num for each in "bBhilqfdFD")
"""NumPy's numbers of the element types whose products NumPy computes as PyTorch does."""
_ELEMENT_NAMES = C_NAMES | {"int16": "short"}


def element_name(tensor: Tensor) -> str:
    """What PyTorch's messages about dtypes call the element type: `float`, `c10::Half`."""
    return _ELEMENT_NAMES.get(tensor._kind.dtype.name, tensor._kind.dtype.name)


def product(left: Any, right: Any, operation: Callable[[Any, Any], Any], name: str) -> Any:
    """`operation(left, right)`, for 16-bit floats computed in float32; `name` is PyTorch's for the error."""
    array_type = left.dtype
    if array_type.num in _NUMBERS:
        return operation(left, right)
    if array_type.itemsize == 2 and array_type.kind != "u":
        if left.ndim > 1 and right.ndim > 1 and left.dtype == right.dtype:
            done = arrays.library_product(left, right)
            if done is not None:
                return done
        return as_array(operation(left.astype(np.float32), right.astype(np.float32))).astype(array_type)
    raise _not_implemented(name, array_type)


def _not_implemented(name: str, array_type: Any) -> NotImplementedError:
    return NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[from_numpy_dtype(array_type)]}'")


def _size(tensor: Tensor) -> str:
    return "x".join(map(str, tensor._array.shape))


def hermitian(matrix: Tensor) -> Tensor:
    """The conjugate transpose of a matrix, or of a batch of matrices."""
    return conj(matrix.transpose(-2, -1))


# ----- mm -----------------------------------------------------------------------------------------------------------


def _is_column_major(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return strides[0] == 1 and strides[1] == sizes[0]


def _mm_left(grad: Tensor, mat2: Tensor, self_sym_sizes: Any, self_sym_strides: Any) -> Tensor:
    """The gradient of the left matrix, in the memory order that this matrix has."""
    if _is_column_major(self_sym_sizes, self_sym_strides):
        return _t((THREAD.modes.autocast[_RULED_MM] if CASTING else _mm)(conj(mat2), _t(grad)))
    return (THREAD.modes.autocast[_RULED_MM] if CASTING else _mm)(grad, conj(_t(mat2)))


def _mm_right(grad: Tensor, self: Tensor, mat2_sym_sizes: Any, mat2_sym_strides: Any) -> Tensor:
    if REPRODUCIBILITY.samples is not None:
        result: Tensor = samples_product(conj(self), grad)
        return result
    if self._array.ndim != 2:
        self = self.flatten(0, -2)  # saved at another level
    if _is_column_major(mat2_sym_sizes, mat2_sym_strides):
        return _t((THREAD.modes.autocast[_RULED_MM] if CASTING else _mm)(_t(grad), conj(self)))
    return (THREAD.modes.autocast[_RULED_MM] if CASTING else _mm)(conj(_t(self)), grad)


@primitive("MmBackward0", self=_mm_left, mat2=_mm_right, fuses=False)
def _mm(self: Array, mat2: Array) -> Array:
    if self.dtype.num in _NUMBERS:
        return array_dot(self, mat2)
    return product(self, mat2, array_dot, "addmm_impl_cpu_")


_RULED_MM = Ruled(dict.fromkeys(DEVICE_TYPES, LOWER), _mm)


def check_mm(left: Tensor, right: Tensor) -> None:
    """Refuse what `mm` refuses."""
    if left._array.shape[1] != right._array.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_size(left)} and {_size(right)}): the columns of the first "
            "must be as many as the rows of the second"
        )
    if left._kind.dtype is not right._kind.dtype:
        found = f"{element_name(left)} != {element_name(right)}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {found}. {advice(right)}")


def advice(right: Tensor) -> str:
    """How two tensors come to have one dtype: that of the second, which in a layer is the weight."""
    return f"Convert one of them, as in .to({right.dtype})"


def checked_mm(left: Tensor, right: Tensor) -> Tensor:
    """The product of two tensors that are known to be matrices."""
    if left._kind is not right._kind or left._array.shape[1] != right._array.shape[0]:
        check_mm(left, right)
    return (THREAD.modes.autocast[_RULED_MM] if CASTING else _mm)(left, right)


@public(out=True, autocast=LOWER)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    if input._array.ndim != 2:
        raise RuntimeError(f"self must be a matrix, but its shape is {list(input._array.shape)}")
    if mat2._array.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, but its shape is {list(mat2._array.shape)}")
    return checked_mm(input, mat2)


@primitive(None)
def _wide_product(self: Array, mat2: Array) -> Array:
    # BLAS is quick in floats. Sums of up to 512 products are below 2**24, and exact in float32; all are in float64.
    exact = np.float32 if self.shape[1] <= 512 else np.float64
    return np.dot(self.astype(exact), mat2.astype(exact)).astype(np.int32)


@public(method=False, out=True)
def _int_mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of 8-bit integers, in 32-bit integers."""
    for name, each, fits in (("self", input, ("int8", "uint8")), ("mat2", mat2, ("int8",))):
        if each._array.ndim != 2:
            raise RuntimeError(f"_int_mm: Expected {name} to be of dimension 2 but got {each._array.ndim}")
        if each._kind.dtype.name not in fits:
            raise RuntimeError(f"_int_mm: Expected {name} dtype to be {' or '.join(fits)} but got {element_name(each)}")
    columns, rows = input._array.shape[1], mat2._array.shape[0]
    if columns != rows:
        raise RuntimeError(f"_int_mm: self.size(1) needs to match mat2.size(0) but got {columns} and {rows}")
    return _wide_product(input, mat2)


# ----- bmm, mv, dot -------------------------------------------------------------------------------------------------


def _left_array(grad: Any, mat2: Any) -> Any:
    return _products_on_arrays(grad, mat2.swapaxes(1, 2))


def _products_on_arrays(left: Any, right: Any) -> Any:
    """The products in a backward pass; None: ops have to compute them."""
    if not is_of_host(type(left)):
        return arrays.products_of_batch(left, right)
    return None if REPRODUCIBILITY.product is not None else arrays.matmul(left, right)


@on_arrays(_left_array)
def _bmm_left(grad: Tensor, mat2: Tensor) -> Tensor:
    return grad.bmm(hermitian(mat2))


def _right_array(grad: Any, self: Any) -> Any:
    return _products_on_arrays(self.swapaxes(1, 2), grad)


@on_arrays(_right_array)
def _bmm_right(grad: Tensor, self: Tensor) -> Tensor:
    return hermitian(self).bmm(grad)


@primitive("BmmBackward0", self=_bmm_left, mat2=_bmm_right, fuses=False)
def _bmm(self: Array, mat2: Array) -> Array:
    return product(self, mat2, _products_of_batches, "bmm")


def _products_of_batches(left: Any, right: Any) -> Any:
    is_integer = left.dtype.kind in "iu" and type(left) is np.ndarray is type(right)
    done = integer_product(left, right) if is_integer else None
    return arrays.matmul(left, right) if done is None else done


def check_bmm(batch1: Tensor, batch2: Tensor) -> None:
    """Refuse what `bmm` refuses."""
    left, right = batch1._array.shape, batch2._array.shape
    if len(left) == 3 == len(right) and (left[0], left[2]) == right[:2] and batch1._kind is batch2._kind:
        return
    for number, each in enumerate((batch1, batch2), 1):
        if each._array.ndim != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor, but its shape is {list(each._array.shape)}")
    first, second = batch1._array.shape, batch2._array.shape
    if (first[0], first[2]) != second[:2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{first[0]}, {first[2]}] but got: "
            f"[{second[0]}, {second[1]}]. (batch1 has shape {list(first)}, batch2 {list(second)})"
        )
    if batch1._kind.dtype is not batch2._kind.dtype:
        if batch1._kind.dtype.category == BOOL:
            raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
        raise RuntimeError(f"expected scalar type {LEGACY_NAMES[batch1.dtype]} but found {LEGACY_NAMES[batch2.dtype]}")


@public(out=True, autocast=LOWER)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    check_bmm(input, mat2)
    return _bmm(input, mat2)


def _mv_right(grad: Tensor, self: Tensor) -> Tensor:
    if REPRODUCIBILITY.samples is not None:
        column: Tensor = samples_product(conj(self), grad.unsqueeze(1))
        return column.squeeze(1)
    return conj(self.t()).mv(grad)


@primitive(
    "MvBackward0",
    self=lambda grad, vec: grad.unsqueeze(1) * conj(vec),
    vec=_mv_right,
)
def _mv(self: Array, vec: Array) -> Array:
    return product(self, vec, array_dot, "addmv_impl_cpu")


@public(out=True, autocast=on(cuda=LOWER))
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if input._array.ndim != 2 or vec._array.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got 1, {input._array.ndim}, {vec._array.ndim} dimensions: shapes "
            f"{list(input._array.shape)} and {list(vec._array.shape)}"
        )
    if input._array.shape[1] != vec._array.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({input._array.shape[0]}), mat ({_size(input)}), vec ({vec._array.shape[0]})"
        )
    if input._kind.dtype is not vec._kind.dtype:
        names = [LEGACY_NAMES[each.dtype] for each in (vec, input, vec)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
        )
    return _mv(input, vec)


_DOT_PART = 32768
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def _dot_in_parts(left: Any, right: Any) -> Any:
    """The dot product; of long float32 vectors by parts, added up in float64: libraries' own sums may be too long."""
    if type(left) is not np.ndarray or REPRODUCIBILITY.product is not None:
        return array_dot(left, right)
    if left.dtype != np.float32 or left.size <= _DOT_PART:
        return left.dot(right)
    parts = [
        left[start : start + _DOT_PART].dot(right[start : start + _DOT_PART])
        for start in range(0, left.size, _DOT_PART)
    ]
    total = sum(map(float, parts))
    if abs(total) <= _FLOAT32_MAX:  # the rule, without a context for the exception
        return np.float32(total)
    with np.errstate(over="ignore"):
        return np.float32(total)


@primitive(
    "DotBackward0",
    self=lambda grad, tensor: grad * conj(tensor),
    tensor=lambda grad, self: grad * conj(self),
)
def _dot(self: Array, tensor: Array) -> Array:
    return product(self, tensor, _dot_in_parts, "dot")


def _vdot_of_arrays(left: Any, right: Any) -> Any:
    return np.vdot(left, right) if REPRODUCIBILITY.product is None else array_dot(left.conj(), right)


@primitive(
    "VdotBackward0",
    self=lambda grad, other: conj(grad) * other,
    other=lambda grad, self: grad * self,
)
def _vdot(self: Array, other: Array) -> Array:
    return product(self, other, _vdot_of_arrays if self.dtype.kind == "c" else _dot_in_parts, "vdot")


def _check_dot(left: Tensor, right: Tensor) -> None:
    if left._array.ndim != 1 or right._array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {left._array.ndim}D and {right._array.ndim}D tensors")
    if left._kind.dtype is not right._kind.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {LEGACY_NAMES[left.dtype]} and "
            f"{LEGACY_NAMES[right.dtype]}"
        )
    sizes = left._array.size, right._array.size
    if sizes[0] != sizes[1]:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{sizes[0]}] and src [{sizes[1]}] to have the same number of "
            f"elements, but got {sizes[0]} and {sizes[1]} elements respectively"
        )


@public(out=True, autocast=on(cuda=WIDEST))
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The dot product of two vectors."""
    _check_dot(input, tensor)
    return _dot(input, tensor)


@public(out=True, autocast=on(cuda=WIDEST))
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The dot product of two vectors, the first of them conjugated."""
    _check_dot(input, other)
    if other.is_conj() and not input.is_conj():  # the result is then a conjugate that is still to be taken
        return conj(dot(input, conj(other)))
    return _vdot(input, other)


# ----- matmul -------------------------------------------------------------------------------------------------------


@primitive("SqueezeBackward4", axes=Along("dim"), self=lambda grad, self_sym_sizes, dim: grad.reshape(self_sym_sizes))
def _without_dim(self: Array, dim: int) -> Array:
    return self.reshape(self.shape[:dim] + self.shape[dim + 1 :])


def write_product(result: Tensor, out: Tensor, operands: tuple[Any, ...]) -> Tensor:
    """`out=` of `matmul`: for a vector times a matrix it is used as a row, which makes it contiguous."""
    is_row = operands[0]._array.ndim == 1 and operands[1]._array.ndim == 2
    if is_row and isinstance(out, Tensor) and out._kind.plain is result._kind and not out._array.flags.c_contiguous:
        out.resize_((1, *result._array.shape)).squeeze_(0)
    return store_exactly(result, out, operands)


@public("linalg.matmul", out=write_product, autocast=LOWER)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; vectors are rows or columns as needed, and further dimensions are batches that broadcast."""
    given: tuple[Any, ...] = (input, other)
    for position, each in enumerate(given, 1):
        if not isinstance(each, Tensor):
            name = "input" if position == 1 else "other"
            raise TypeError(
                f"matmul(): argument '{name}' (position {position}) must be Tensor, not {type(each).__name__}"
            )
    left, right = input._array.ndim, other._array.ndim
    if left == 2 and right == 2:
        return checked_mm(input, other)
    if left == 0 or right == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    if left == 1 and right == 1:
        return dot(input, other)
    if left == 2 and right == 1:
        return mv(input, other)
    if left == 1 and right == 2:
        return _without_dim(checked_mm(_unsqueeze(input, 0), other), 0)
    return _batched(input, other)


_RULED_MATMUL = Ruled(RULED["matmul"], matmul)


def _batched_on_arrays(left: Array, right: Array) -> Any:
    if left.dtype is not right.dtype:
        return None
    try:
        if right.ndim > 2 and left.dtype.kind == "f" and left.dtype.num in _NUMBERS:
            return arrays.contiguous(arrays.matmul(left, right))
        return product(left, right, _batched_product, "bmm")
    except ValueError:
        return None  # the decomposition says what does not fit


@composite("matmul", kernel=_batched_on_arrays)
def _batched(left: Tensor, right: Tensor) -> Tensor:
    """`matmul` where one of the operands is a batch."""
    if _folds(left, right):
        return _folded(left, right)
    if THREAD.modes.grad and (done := product_of_batches(left, right)) is not None:
        return done
    first, second = left._array.shape, right._array.shape
    rows, columns = (first[-2:-1] if len(first) > 1 else ()), (second[-1:] if len(second) > 1 else ())
    try:
        batch = joint_shape(first[:-2], second[:-2])
    except ValueError:
        raise _batch_error(left, right) from None
    if len(first) == 1:
        left = _unsqueeze(left, 0)
    if len(second) == 1:
        right = _unsqueeze(right, 1)
    count = math.prod(batch)
    sizes, others = left._array.shape[-2:], right._array.shape[-2:]
    one = reshaped(_expand(left, (*batch, *sizes)), (count, *sizes))
    two = reshaped(_expand(right, (*batch, *others)), (count, *others))
    fits = sizes[1] == others[0] and left._kind is right._kind
    return _unsafe_view((_bmm if fits else bmm)(one, two), (*batch, *rows, *columns))


def _batched_product(left: Any, right: Any) -> Any:
    if right.ndim == 2 and left.size and left.flags.c_contiguous:  # one product of all rows
        return array_dot(left.reshape(-1, left.shape[-1]), right).reshape(*left.shape[:-1], right.shape[1])
    return arrays.contiguous(_products_of_batches(left, right))


def _batch_error(left: Tensor, right: Tensor) -> Exception:
    batches = [Tensor._from_parts((np.empty(each._array.shape[:-2]), each._kind, None)) for each in (left, right)]
    return shape_error("matmul (batch dimensions)", batches[0], batches[1])


def _folds(left: Tensor, right: Tensor) -> bool:
    """Whether the batch dimensions of one operand can count as rows, because the other one has none."""
    swapped = left._array.ndim < right._array.ndim
    large, small = (right, left) if swapped else (left, right)
    if large._array.ndim < 3 or small._array.ndim > 2:
        return False
    if small.requires_grad:
        return True
    if left._array.ndim == 2:  # the result would have to be transposed, which copies it
        return False
    array = large._array.swapaxes(-2, -1) if swapped else large._array
    if array.size == 0:
        return True
    shape, strides = array.shape, array.strides
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(array.ndim - 2))


def _folded(left: Tensor, right: Tensor) -> Tensor:
    swapped = left._array.ndim < right._array.ndim
    if swapped:
        large, small = right.transpose(-2, -1), _t(left) if left._array.ndim == 2 else left
    else:
        large, small = left, right
    shape = large._array.shape
    rows = math.prod(shape[:-1])
    folded = reshaped(large, (rows, shape[-1]))
    if small._array.ndim == 1:
        return _unsafe_view(mv(folded, small), shape[:-1])
    result = _unsafe_view(checked_mm(folded, small), (*shape[:-1], small._array.shape[1]))
    if not swapped:
        return result
    turned = _transpose(result, result.ndim - 2, result.ndim - 1)
    return turned if turned._array.flags.c_contiguous else _contiguous_clone(turned)


def _matmul_operator(self: Any, other: Any, *, out: Any = None) -> Any:
    if type(self) in DIRECT_TYPES and type(other) in DIRECT_TYPES and out is None:
        left, right = self._array, other._array
        is_mm = left.ndim == 2 and right.ndim == 2 and self._kind is other._kind and left.shape[1] == right.shape[0]
        try:
            if is_mm:
                return (THREAD.modes.autocast[_RULED_MM] if CASTING else _mm)(self, other)
            return (THREAD.modes.autocast[_RULED_MATMUL] if CASTING else matmul)(self, other)
        except Exception as error:
            explain(error, "matmul", {})
            raise
    if out is not None:
        return NotImplemented  # operators have no `out=`
    if has_override((self, other)):
        return run_override(_matmul_operator, (self, other), (self, other), {})
    if not isinstance(self, Tensor) or not isinstance(other, Tensor):
        return NotImplemented  # the other operand may know
    return (THREAD.modes.autocast[_RULED_MATMUL] if CASTING else matmul)(self, other)


def _reversed_matmul_operator(self: Any, other: Any, *, out: Any = None) -> Any:
    if out is not None:
        return NotImplemented
    if type(other) not in DIRECT_TYPES and has_override((self, other)):
        return run_override(_reversed_matmul_operator, (self, other), (self, other), {})
    if not isinstance(self, Tensor) or not isinstance(other, Tensor):
        return NotImplemented
    return (THREAD.modes.autocast[_RULED_MATMUL] if CASTING else matmul)(other, self)


for _function, _name in ((_matmul_operator, "__matmul__"), (_reversed_matmul_operator, "__rmatmul__")):
    _function.__name__ = _function.__qualname__ = _name
export_method(_matmul_operator, "__matmul__")
export_method(_reversed_matmul_operator, "__rmatmul__")


# ----- outer and inner ----------------------------------------------------------------------------------------------


@public("ger", out=write_out)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The outer product of two vectors."""
    for name, each in (("self", input), ("vec2", vec2)):
        if each._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {each._array.ndim}-D")
    return mul(reshaped(input, (input._array.size, 1)), vec2)


@public(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The dot product of vectors; for tensors, of all pairs of vectors in their last dimensions."""
    from .contract import tensordot

    if input._array.ndim == 0 or other._array.ndim == 0:
        return mul(input, other)
    if input._array.shape[-1] != other._array.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._array.shape)} and {list(other._array.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


def scalar_factor(value: Any, tensor: Tensor) -> Any:
    """`alpha` or `beta` as a number of the tensor's kind: integer tensors take the whole part."""
    target = tensor._kind.dtype
    if type(value) is int and value == 1:
        return value
    return scaling(value, float32 if target.category == FLOAT and target.itemsize < 4 else target)


def expand_error(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """PyTorch's error if `shape` does not broadcast to `target`."""
    expanded_shape(shape, target)
