"""A product of matrices or vectors added to a tensor: addmm, addmv, addr, baddbmm, addbmm; and of three tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.backend import as_array
from ..._core.dtype import INTEGER, LEGACY_NAMES
from ..._core.modes import THREAD
from ..._core.node import SavedTensor
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import LOWER, WIDEST, on
from ..._dispatch.arguments.promotion import Number, result_type_of
from ..._dispatch.changes.exact_out import store_resized
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.array_derivatives import on_arrays
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..pointwise.binary import add, conj
from ..reduce.reductions import sum_over
from ..shape.view import _t, reshaped, wrap_dim
from .matmul import (
    _NUMBERS,
    _is_column_major,
    _mm,
    _size,
    advice,
    bmm,
    check_bmm,
    check_mm,
    element_name,
    expand_error,
    hermitian,
    mv,
    outer,
    product,
    scalar_factor,
)  # fmt: skip
from .over_samples import samples_product
from .products import array_dot, half_product_plus, product_plus


def _scaled(value: Any, factor: Any) -> Any:
    if factor == 1:
        return value
    return value * (factor.conjugate() if isinstance(factor, complex) else factor)


def _sum_with(self: Any, result: Any, beta: Number, alpha: Number) -> Any:
    """`beta * self + alpha * result` in the precision of `result`; a `beta` of zero hides even NaN in `self`."""
    if alpha != 1:
        result = result * alpha
    if beta == 1:
        result = result + self
    elif beta != 0:
        result = result + self * beta
    return as_array(result)


def _half(array: Any) -> bool:
    return array.dtype.itemsize == 2 and array.dtype.kind not in "iu"


def _combined(self: Any, left: Any, right: Any, operation: Any, name: str, beta: Number, alpha: Number) -> Any:
    array_type = left.dtype
    if (isinstance(beta, complex) or isinstance(alpha, complex)) and array_type.kind != "c":
        raise RuntimeError(f"value cannot be converted to type double without overflow: {beta=}, {alpha=}")
    if _half(left):  # rounded once, after everything
        if beta == 1 and alpha == 1 and (done := half_product_plus(left, right, self)) is not None:
            return done
        wide = [each.astype(np.float32) for each in (self, left, right)]
        return _sum_with(wide[0], operation(wide[1], wide[2]), beta, alpha).astype(array_type)
    return _sum_with(self, product(left, right, operation, name), beta, alpha).astype(array_type, copy=False)


def older_orders(factors: str) -> tuple[str, ...]:
    """The order of arguments that PyTorch once had, for functions and for methods."""
    return (
        f"beta input alpha {factors}",
        f"input beta alpha {factors}",
        f"beta input {factors}",
        f"input beta {factors}",
    )


# ----- addmm --------------------------------------------------------------------------------------------------------


def _left_array(grad: Any, mat2: Any, mat1_sym_sizes: Any, mat1_sym_strides: Any, alpha: Number) -> Any:
    if alpha != 1:
        return None
    if _is_column_major(mat1_sym_sizes, mat1_sym_strides):
        return array_dot(mat2, grad.T).T
    return array_dot(grad, mat2.T)


@on_arrays(_left_array)
def _addmm_left(grad: Tensor, mat2: Tensor, mat1_sym_sizes: Any, mat1_sym_strides: Any, alpha: Number) -> Any:
    if _is_column_major(mat1_sym_sizes, mat1_sym_strides):
        return _scaled(_t(_mm(conj(mat2), _t(grad))), alpha)
    return _scaled(_mm(grad, conj(_t(mat2))), alpha)


def _right_array(grad: Any, mat1: Any, mat2_sym_sizes: Any, mat2_sym_strides: Any, alpha: Number) -> Any:
    if alpha != 1 or mat1.ndim != 2 or REPRODUCIBILITY.samples is not None:
        return None
    if _is_column_major(mat2_sym_sizes, mat2_sym_strides):
        return array_dot(grad.T, mat1).T
    return array_dot(mat1.T, grad)


@on_arrays(_right_array)
def _addmm_right(grad: Tensor, mat1: Tensor, mat2_sym_sizes: Any, mat2_sym_strides: Any, alpha: Number) -> Any:
    if REPRODUCIBILITY.samples is not None:
        return _scaled(samples_product(conj(mat1), grad), alpha)
    if mat1._array.ndim != 2:
        mat1 = mat1.flatten(0, -2)  # saved at another level
    if _is_column_major(mat2_sym_sizes, mat2_sym_strides):
        return _scaled(_t(_mm(_t(grad), conj(mat1))), alpha)
    return _scaled(_mm(conj(_t(mat1)), grad), alpha)


def _addmm_added(grad: Tensor, self_sym_sizes: Any, beta: Number) -> Any:
    modes = THREAD.modes
    if beta == 1 and self_sym_sizes == grad._array.shape[1:] and not modes.grad and modes.is_ordinary:
        return sum_over(grad, (0,), False)
    return _scaled(grad, beta)


def gradients_by_plan(node: Any, grad: Any, kind: Any, needed: Any, of_transposed: bool = False) -> Any:
    """All three gradients as arrays, where the device has a plan for them together."""
    if node.alpha != 1 or node.beta != 1 or (needed[0] and node.self_sym_sizes != grad.shape[1:]):
        return None
    sizes = node.mat1_sym_sizes if needed[1] else None  # what nobody needs is not kept
    if sizes is not None and len(sizes) == 2 and _is_column_major(sizes, node.mat1_sym_strides):
        return None
    if needed[2] and not of_transposed and _is_column_major(node.mat2_sym_sizes, node.mat2_sym_strides):
        return None
    mat1 = mat2 = None
    if needed[2]:
        mat1 = node.mat1.array_of(kind) if type(node.mat1) is SavedTensor else None
        if mat1 is None:
            return None
    if needed[1]:
        mat2 = node.mat2.array_of(kind) if type(node.mat2) is SavedTensor else None
        if mat2 is None:
            return None
    return arrays.addmm_gradients(grad, mat1, mat2, sizes, needed, of_transposed)


@primitive("AddmmBackward0", self=_addmm_added, mat1=_addmm_left, mat2=_addmm_right, fuses=False)
def _addmm(self: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    if beta == 1 and alpha == 1 and mat1.dtype.num in _NUMBERS:
        return product_plus(mat1, mat2, self)
    return _combined(self, mat1, mat2, array_dot, "addmm_impl_cpu_", beta, alpha)


_addmm.gradients_by_plan = gradients_by_plan


def _check_addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    if mat1._array.ndim != 2 or mat2._array.ndim != 2:
        name, wrong = ("mat1", mat1) if mat1._array.ndim != 2 else ("mat2", mat2)
        raise RuntimeError(f"{name} must be a matrix, got {wrong._array.ndim}-D tensor")
    if input._kind.dtype is not mat2._kind.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {LEGACY_NAMES[input.dtype]} and "
            f"{LEGACY_NAMES[mat2.dtype]}"
        )
    if mat1._array.shape[1] != mat2._array.shape[0]:
        check_mm(mat1, mat2)
    if mat1._kind.dtype is not mat2._kind.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {LEGACY_NAMES[mat1.dtype]} and "
            f"{LEGACY_NAMES[mat2.dtype]}. {advice(mat2)}"
        )
    shape = (mat1._array.shape[0], mat2._array.shape[1])
    if input._array.shape not in (shape, shape[1:]):
        expand_error(input._array.shape, shape)


@public(inplace=True, out=True, older=older_orders("mat1 mat2"), autocast=LOWER)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    _check_addmm(input, mat1, mat2)
    if type(beta) is not int or beta != 1 or type(alpha) is not int or alpha != 1:
        beta, alpha = scalar_factor(beta, input), scalar_factor(alpha, input)
    return _addmm(input, mat1, mat2, beta, alpha)


# ----- addmv and addr -----------------------------------------------------------------------------------------------


@primitive(
    "AddmvBackward0",
    self=lambda grad, beta: _scaled(grad, beta),
    mat=lambda grad, vec, alpha: _scaled(outer(grad, conj(vec)), alpha),
    vec=lambda grad, mat, alpha: _scaled(mv(conj(mat.t()), grad), alpha),
)
def _addmv(self: Array, mat: Array, vec: Array, beta: Number, alpha: Number) -> Array:
    return _combined(self, mat, vec, array_dot, "addmv_impl_cpu", beta, alpha)


@public(inplace=True, out=True, older=older_orders("mat vec"), autocast=on(cuda=LOWER))
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`."""
    dims = [each._array.ndim for each in (input, mat, vec)]
    if dims[1:] != [2, 1] or dims[0] > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {dims[0]}, {dims[1]}, {dims[2]}")
    rows = input._array.shape[0] if dims[0] else 1
    if mat._array.shape[1] != vec._array.shape[0] or rows not in (mat._array.shape[0], 1):
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({_size(mat)}), vec ({vec._array.shape[0]})")
    if not input._kind.dtype is mat._kind.dtype is vec._kind.dtype:
        names = [LEGACY_NAMES[each.dtype] for each in (input, mat, vec)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
        )
    return _addmv(input, mat, vec, scalar_factor(beta, input), scalar_factor(alpha, input))


@primitive(
    "AddrBackward0",
    self=lambda grad, beta: _scaled(grad, beta),
    vec1=lambda grad, vec2, alpha: _scaled(mv(grad, conj(vec2)), alpha),
    vec2=lambda grad, vec1, alpha: _scaled(mv(grad.t(), conj(vec1)), alpha),
)
def _addr(self: Array, vec1: Array, vec2: Array, beta: Number, alpha: Number) -> Array:
    if self.dtype.kind == "b":
        return np.logical_and.outer(vec1, vec2) & bool(alpha) | (self & bool(beta))
    if _half(self):  # every step is rounded
        kind = self.dtype.type
        result = np.multiply.outer(vec1 * kind(alpha), vec2)
        return result if beta == 0 else self * kind(beta) + result
    return _combined(self, vec1, vec2, np.multiply.outer, "addr", beta, alpha)


@public(inplace=True, out=write_out, older=older_orders("vec1 vec2"), autocast=on(cuda=LOWER))
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    for name, each in (("vec1", vec1), ("vec2", vec2)):
        if each._array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {each._array.ndim}-D")
    expand_error(input._array.shape, (vec1._array.size, vec2._array.size))
    common = result_type_of(input, vec1, vec2)
    if common.category <= INTEGER and not (isinstance(alpha, int) and isinstance(beta, int)):
        word = "beta" if isinstance(alpha, int) else "alpha"
        raise RuntimeError(f"For integral input tensors, argument {word} must not be a floating point number.")
    first, second, third = (each.to(common) for each in (input, vec1, vec2))
    return _addr(first, second, third, scalar_factor(beta, first), scalar_factor(alpha, first))


# ----- batches ------------------------------------------------------------------------------------------------------


@primitive(
    "BaddbmmBackward0",
    self=lambda grad, beta: _scaled(grad, beta),
    batch1=lambda grad, batch2, alpha: _scaled(bmm(grad, hermitian(batch2)), alpha),
    batch2=lambda grad, batch1, alpha: _scaled(bmm(hermitian(batch1), grad), alpha),
)
def _baddbmm(self: Array, batch1: Array, batch2: Array, beta: Number, alpha: Number) -> Array:
    return _combined(self, batch1, batch2, _batched_product, "baddbmm", beta, alpha)


_SMALL = 400
"""Below so many multiplications PyTorch adds up each element of a complex product term by term, without BLAS."""


def _batched_product(batch1: Any, batch2: Any) -> Any:
    rows, inner = batch1.shape[1:]
    if batch1.dtype.kind != "c" or rows * inner * batch2.shape[2] >= _SMALL:
        return arrays.matmul(batch1, batch2)
    total = np.zeros((len(batch1), rows, batch2.shape[2]), batch1.dtype)
    for place in range(inner):
        total += batch1[:, :, place, None] * batch2[:, None, place]
    return total


def _check_result_has_sizes(batch1: Tensor, batch2: Tensor) -> None:
    """Refuse batches that lack the dimensions of the products: PyTorch looks for these before all else."""
    wrap_dim(1, batch1._array.ndim)
    wrap_dim(2, batch2._array.ndim)


@public(inplace=True, out=True, older=older_orders("batch1 batch2"), autocast=LOWER)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2)`."""
    _check_result_has_sizes(batch1, batch2)
    if not input._kind.dtype is batch1._kind.dtype is batch2._kind.dtype:
        names = [element_name(each) for each in (input, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
        )
    check_bmm(batch1, batch2)
    expand_error(input._array.shape, (*batch1._array.shape[:2], batch2._array.shape[2]))
    return _baddbmm(input, batch1, batch2, scalar_factor(beta, input), scalar_factor(alpha, input))


def _for_each_product(grad: Tensor, count: int) -> Tensor:
    return grad.unsqueeze(0).expand(count, *grad._array.shape)


@primitive(
    "AddbmmBackward0",
    self=lambda grad, beta: _scaled(grad, beta),
    batch1=lambda grad, batch2, alpha: _scaled(bmm(_for_each_product(grad, len(batch2)), hermitian(batch2)), alpha),
    batch2=lambda grad, batch1, alpha: _scaled(bmm(hermitian(batch1), _for_each_product(grad, len(batch1))), alpha),
)
def _addbmm(self: Array, batch1: Array, batch2: Array, beta: Number, alpha: Number) -> Array:
    if _half(batch1) and len(batch1):  # rounded after each product
        for one, two in zip(batch1, batch2, strict=True):
            self, beta = _combined(self, one, two, array_dot, "addbmm", beta, alpha), 1
        return self
    return _combined(self, batch1, batch2, _sum_of_products, "addbmm", beta, alpha)


def _sum_of_products(batch1: Any, batch2: Any) -> Any:
    count, rows, inner = batch1.shape
    return array_dot(
        batch1.transpose(1, 0, 2).reshape(rows, count * inner), batch2.reshape(count * inner, batch2.shape[2])
    )


@public(inplace=True, out=store_resized, older=older_orders("batch1 batch2"), autocast=LOWER)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha *` the sum of the products of a batch."""
    _check_result_has_sizes(batch1, batch2)
    for number, each in enumerate((batch1, batch2), 1):
        if each._array.ndim != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor")
    if batch1._array.shape[0] != batch2._array.shape[0]:
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{batch1._array.shape[0]} and {batch2._array.shape[0]}"
        )
    if batch1._array.shape[2] != batch2._array.shape[1]:
        first, second = ("x".join(map(str, each._array.shape[1:])) for each in (batch1, batch2))
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({first} and {second})")
    if not input._kind.dtype is batch1._kind.dtype is batch2._kind.dtype:
        raise RuntimeError(
            f"Expected input, batch1 and batch2 to have the same dtype, got {input.dtype}, {batch1.dtype}, "
            f"{batch2.dtype}"
        )
    expand_error(input._array.shape, (batch1._array.shape[1], batch2._array.shape[2]))
    return _addbmm(input, batch1, batch2, scalar_factor(beta, input), scalar_factor(alpha, input))


# ----- products of three --------------------------------------------------------------------------------------------


@primitive(
    "TrilinearBackward0",
    i1=lambda grad, i2, i3: _einsum("no,oij,nj->ni", grad, conj(i2), conj(i3)),
    i2=lambda grad, i1, i3: _einsum("no,ni,nj->oij", grad, conj(i1), conj(i3)),
    i3=lambda grad, i1, i2: _einsum("no,ni,oij->nj", grad, conj(i1), conj(i2)),
)
def _trilinear(i1: Array, i2: Array, i3: Array) -> Array:
    outputs, first, second = i2.shape
    wide = [each.astype(np.float32) for each in (i1, i2, i3)] if _half(i1) else [i1, i2, i3]
    partial = array_dot(wide[0], wide[1].transpose(1, 0, 2).reshape(first, outputs * second))
    if _half(i1):  # two products in PyTorch, each of them rounded
        partial = partial.astype(i1.dtype).astype(np.float32)
    result = arrays.matmul(partial.reshape(len(i1), outputs, second), wide[2][:, :, None]).reshape(len(i1), outputs)
    return result.astype(i1.dtype, copy=False)


def _einsum(*args: Any) -> Tensor:
    from .einsum import einsum

    return einsum(*args)


@public("nn.functional.bilinear", method=False, autocast=on(cuda=WIDEST))
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2 + bias[k]` for each output k."""
    one, two, sizes = input1._array.shape, input2._array.shape, weight._array.shape
    for each in (input2, weight, bias):
        if each is not None and each._kind.dtype is not input1._kind.dtype:
            raise RuntimeError(
                f"bilinear(): expected scalar type {LEGACY_NAMES[input1.dtype]} but found {LEGACY_NAMES[each.dtype]}"
            )
    if len(one) != len(two):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(one)} and {len(two)}")
    for dim in range(len(one) - 1):
        if one[dim] != two[dim]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {one[dim]} and {two[dim]}"
            )
    for number, (given, wanted) in enumerate(((one[-1], sizes[1]), (two[-1], sizes[2])), 1):
        if given != wanted:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {given} but expected {wanted}"
            )
    if bias is not None and bias._array.shape[0] != sizes[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias._array.shape[0]} but expected {sizes[0]}"
        )
    rows = math.prod(one[:-1])
    flat = _trilinear(reshaped(input1, (rows, one[-1])), weight, reshaped(input2, (rows, two[-1])))
    result = reshaped(flat, (*one[:-1], sizes[0]))
    return result if bias is None else add(result, bias)
