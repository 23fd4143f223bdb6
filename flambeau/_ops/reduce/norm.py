"""Norms of vectors and matrices, and distances."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import ZEROS, joint_shape
from ..._core.backend import LARGE, as_array
from ..._core.dtype import BOOL, FLOAT, LEGACY_NAMES, promote_types
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.arguments.promotion import Number
from ..._dispatch.axes import Along
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.protocol import as_kind
from ..._dispatch.public.registry import public
from ..create.constants import as_dtype
from ..pointwise.binary import conj
from ..shape.view import wrap_dim
from .reductions import Dims, in_single, kept_shape, reduced, reduced_dims, restore_dims


def _norm_gradient(
    grad: Tensor, self: Tensor, result: Tensor, ord: float, dim: tuple[int, ...], keepdim: bool
) -> Tensor | None:
    """At zero, and where several elements share the maximum, the sub-gradient of least norm, as in PyTorch."""
    grad = restore_dims(grad, dim, keepdim)
    result = restore_dims(result, dim, keepdim)
    if ord == 0:  # a count: no gradient
        return None
    if ord == 1:
        return self.sgn() * grad
    if ord == 2:
        return grad * (self / result).masked_fill(result == 0, 0)
    if math.isinf(ord):
        size = self.abs()
        at_extreme = (size == result).logical_or(result.isnan().logical_and(size.isnan()))
        shared = at_extreme.sum(dim, keepdim=True)
        return self.sgn() * (at_extreme.to(result.dtype) * (grad / shared))
    if ord < 1:
        scaled = self.sgn() * (self.abs() ** (ord - 1)).masked_fill(self == 0, 0)
        return scaled * (grad * result ** (1 - ord))
    scaled = self.sgn() * self.abs() ** (ord - 1) if ord < 2 else self * self.abs() ** (ord - 2)
    return scaled * (grad / result ** (ord - 1)).masked_fill(result == 0, 0)


def _norm_tangent(
    tangent: Tensor, result: Tensor, self: Tensor, ord: float, dim: tuple[int, ...], keepdim: bool
) -> Tensor | None:
    """By the gradient, which is 0 at zero, and not by the derivative of the gradient, which is NaN there."""
    gradient = _norm_gradient(result.new_ones(result.shape), self, result, ord, dim, keepdim)
    if gradient is None:
        return None
    product = gradient.conj() * tangent
    return (product.real if product.dtype.is_complex else product).sum(dim, keepdim)


_add: Any = np.add.reduce


def _norm_of(self: Array, ord: float, dim: tuple[int, ...], keepdim: bool) -> Array:
    """The `ord`-norm along `dim`, summed up in float64 where there is much to sum."""
    if self.size >= LARGE:
        if ord == 2 and (norms := arrays.reduced("norm", self, dim, self.dtype)) is not None:
            return norms.reshape(kept_shape(self.shape, dim)) if keepdim else norms
    elif (
        type(self) is np.ndarray
        and not keepdim
        and len(dim) == self.ndim
        and self.dtype in ZEROS
        and REPRODUCIBILITY.total is None
    ):
        if ord == 2:
            # The root in float64 is that of float32 when it is rounded, and comes sooner than NumPy's.
            return np.array(math.sqrt(_add(self * self, dim)), self.dtype)
        if 1 < ord < math.inf:
            return _add(np.absolute(self) ** _exponent(ord, self.dtype), dim) ** (1 / ord)
    wide = in_single(self) if self.dtype.itemsize == 2 else self
    if ord == 2 and wide.dtype.kind == "f":
        value = np.sqrt(reduced(np.add, wide * wide, dim, keepdim))
    else:
        value = _norm_of_sizes(np.absolute(wide), ord, dim, keepdim)
    return value if value.dtype is self.dtype else as_array(value).astype(self.real.dtype, copy=False)


def _norm_of_sizes(size: Any, ord: float, dim: tuple[int, ...], keepdim: bool) -> Any:
    if ord == 2:
        return np.sqrt(reduced(np.add, size * size, dim, keepdim))
    if ord == 1:
        return reduced(np.add, size, dim, keepdim)
    if ord == 0:
        return reduced(np.add, (size != 0).astype(size.dtype), dim, keepdim)
    if ord == math.inf:
        if size.size == 0:  # of nothing the largest is 0, for sizes cannot be negative
            return reduced(np.add, size, dim, keepdim)
        return reduced(np.maximum, size, dim, keepdim)
    if ord == -math.inf:
        return reduced(np.minimum, size, dim, keepdim)
    exponent = _exponent(ord, size.dtype) if type(size) is np.ndarray else ord
    if REPRODUCIBILITY.function is not None and type(size) is np.ndarray:
        total = reduced(np.add, REPRODUCIBILITY.function("power", size, exponent), dim, keepdim)
        return REPRODUCIBILITY.function("power", total, size.dtype.type(1 / ord))
    return reduced(np.add, size**exponent, dim, keepdim) ** (1 / ord)


@functools.lru_cache(64)
def _exponent(ord: float, dtype: np.dtype[Any]) -> Any:
    """The order as NumPy has the least work with it beside an array of `dtype`."""
    return np.array(ord, dtype)


_vector_norm = primitive("LinalgVectorNormBackward0", op_name="vector_norm", axes=Along("dim"), self=_norm_gradient)(
    _norm_of
)
_vector_norm.tangent = _norm_tangent


@public("linalg.vector_norm", function=False, method=False, autocast=on(cuda=FULL))
def vector_norm(
    input: Tensor, ord: Number = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """The `ord`-norm of the elements, of all or along `dim`."""
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {LEGACY_NAMES[input.dtype]}"
        )
    if type(ord) is not int and type(ord) is not float:
        if isinstance(ord, complex):
            raise RuntimeError(f"linalg.vector_norm: Expected a non-complex scalar as the order of norm, not {ord}")
        ord = as_kind("linalg.vector_norm", "ord", ord, "Number")
    if dtype is not None:
        input = input.to(as_dtype(dtype, "linalg_vector_norm"))
    dims = reduced_dims(dim, input._array.ndim)
    if ord < 0 or ord == math.inf:
        empty = input._array.size == 0 and (dim is None or math.prod(input.shape[each] for each in dims) == 0)
        if empty:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not "
                f"have an identity: shape {list(input._array.shape)}, dims {list(dims)}"
            )
    result = _vector_norm(input, float(ord), dims, keepdim)
    return result if out is None else store_exactly(result, out)


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@public(method=False, autocast=on(cuda=FULL))
def norm(
    input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """The `p`-norm of the elements; "fro" is the 2-norm."""
    if keepdim is not True and keepdim is not False:
        raise TypeError(
            f"linalg_vector_norm(): argument 'keepdim' (position 4) must be bool, not {type(keepdim).__name__}"
        )
    if p is None or p == "fro":
        if isinstance(dim, (tuple, list)) and len(dim) > 2:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}: try p=2")
        p = 2
    elif p == "nuc":
        dims = tuple(range(input._array.ndim)) if dim is None else dim
        if not all(map(_is_int, dims if isinstance(dims, (tuple, list)) else (dims,))):
            raise TypeError(f"linalg_matrix_norm(): argument 'dim' must be tuple of ints, not {type(dim).__name__}")
        return store_exactly(matrix_norm(input, "nuc", dims, keepdim, dtype=dtype), out)
    elif isinstance(p, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported. It may be a number, 'fro' or 'nuc'")
    return vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


@public(function=False, name="norm", autocast=on(cuda=FULL))
def _method_norm(input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The `p`-norm of the elements; "fro" is the 2-norm."""
    return norm(input, p, dim, keepdim, dtype=dtype)


def _whole_norm_gradient(grad: Tensor, difference: Tensor, result: Tensor, p: float) -> Any:
    return _norm_gradient(grad, difference, result, p, tuple(range(difference.ndim)), False)


@primitive(
    "DistBackward0",
    self=lambda grad, self, other, result, p: _whole_norm_gradient(grad, self - other, result, p),
    other=lambda grad, self, other, result, p: _whole_norm_gradient(-grad, self - other, result, p),
)
def _dist(self: Array, other: Array, p: float) -> Array:
    apart = self - other
    return _norm_of(apart, p, tuple(range(apart.ndim)), False)


@public(autocast=on(cuda=FULL))
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """The `p`-norm of `input - other`."""
    common = promote_types(input._kind.dtype, other._kind.dtype)
    if common.category == BOOL:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported: dist of bool tensors"
        )
    if common.category < FLOAT:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {LEGACY_NAMES[common]} instead."
        )
    try:
        joint_shape(input._array.shape, other._array.shape)
    except ValueError:
        raise shape_error("dist", input, other) from None
    return _dist(input.to(common), other.to(common), float(p))


_EPSILON = 1e-7


def _renorm_gradient(grad: Tensor, self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    others = tuple(each for each in range(self.ndim) if each != dim)
    size = vector_norm(self, p, others, True)
    factor = maxnorm / (size + _EPSILON)
    along = (grad * conj(self)).sum(others, keepdim=True)
    along = along.real if along._kind.dtype.is_complex else along
    of_size = _norm_gradient(-along * factor / (size + _EPSILON), self, size, p, others, True)
    return (grad * factor + of_size).where(size > maxnorm, grad)


@primitive("RenormBackward0", self=_renorm_gradient)
def _renorm(self: Array, p: float, dim: int, maxnorm: float) -> Array:
    size = in_single(_norm_of(in_single(self), p, tuple(each for each in range(self.ndim) if each != dim), True))
    factor = np.where(size > maxnorm, maxnorm / (size + _EPSILON), 1).astype(size.dtype)
    return np.array(in_single(self) * factor, self.dtype, order="C", like=self)


@public(inplace=True, out=True, autocast=on(cuda=FULL))
def renorm(input: Tensor, p: Any, dim: int, maxnorm: float) -> Tensor:
    """Scale the sub-tensors along `dim` whose `p`-norm exceeds `maxnorm` down to it."""
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(f"renorm: expected a floating point or complex tensor, got {LEGACY_NAMES[input.dtype]}")
    if isinstance(p, complex) or not p > 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p is {p}")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input._array.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input._array.ndim} dimensions")
    dim = wrap_dim(dim, input._array.ndim)
    if p == math.inf and 0 in (*input._array.shape[:dim], *input._array.shape[dim + 1 :]):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the inf norm for renorm: the sub-tensors along dimension {dim} "
            "are empty and the operation does not have an identity"
        )
    return _renorm(input, float(p), dim, float(maxnorm))


# ----- norms of matrices ------------------------------------------------------------------------------------------


def _check_matrix(name: str, A: Tensor, dim: Any) -> tuple[int, int]:
    if A._kind.dtype.category < FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {LEGACY_NAMES[A.dtype]}")
    if A._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    first, second = (wrap_dim(each, A._array.ndim) for each in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _singular_values(A: Tensor, dims: tuple[int, int]) -> Tensor:
    from ..linalg.decompose import svdvals

    return svdvals(A.movedim(dims, (-2, -1)))


def _zero_norm(nothing: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The norm of an empty matrix: zero, and as in PyTorch a constant."""
    return nothing.detach().sum(dim, keepdim)


@public("linalg.matrix_norm", function=False, method=False, out=True, autocast=on(cuda=FULL))
def matrix_norm(
    input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices: "fro", "nuc", or 1, 2, inf and their negatives."""
    dims = _check_matrix("linalg.matrix_norm", input, dim)
    if dtype is not None:
        input = input.to(dtype)
    if ord == "fro":
        return vector_norm(input, 2, dims, keepdim)
    if isinstance(ord, str) and ord != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "nuc" or abs(ord) == 2:
        if input._kind.dtype.itemsize == 2:
            raise RuntimeError(
                f"linalg.matrix_norm: Low precision dtypes not supported. Got {LEGACY_NAMES[input.dtype]}"
            )
        values = _singular_values(input, dims)
        if ord == "nuc":
            result = values.sum(-1)
        elif ord > 0:
            result = values.amax(-1) if values._array.shape[-1] else _zero_norm(values, -1, False)
        else:
            result = values.amin(-1)
        return restore_dims(result, dims, False) if keepdim else result
    if abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, compared = dims if abs(ord) == 1 else (dims[1], dims[0])
    sums = vector_norm(input, 1, summed, True)
    empty = sums._array.shape[compared] == 0
    if not keepdim:
        sums = sums.squeeze(summed)
        compared -= compared > summed
    if ord > 0 and empty:
        return _zero_norm(sums, compared, keepdim)
    return sums.amax(compared, keepdim) if ord > 0 else sums.amin(compared, keepdim)


@public("linalg.norm", function=False, method=False, out=True, autocast=on(cuda=FULL))
def linalg_norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of vectors or, where `dim` names two dimensions, of matrices."""
    ndim = input._array.ndim
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if dim is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if isinstance(ord, str) or (dim is None and ndim == 2) or (isinstance(dim, (tuple, list)) and len(dim) == 2):
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, ord, dim, keepdim, dtype=dtype)


@composite("list_norms")
def list_norms(tensors: list[Any]) -> list[Any]:
    """The 2-norm of each tensor of a list."""
    return [vector_norm(each, 2) for each in tensors]
