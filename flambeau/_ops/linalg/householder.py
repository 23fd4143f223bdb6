"""Householder reflectors: the raw form of QR, and products with the orthogonal matrix that it stands for.

Column i of the raw form holds, below the diagonal, a vector v[i] whose element i is 1. The matrix meant is the product
of the reflectors I - tau[i] v[i] v[i]^H. With V the matrix of the vectors it equals I - V T V^H for a triangular T, so
no step below needs a loop: T = (I + D S)^-1 D, where D = diag(tau) and S is the strict upper triangle of V^H V.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends import lapack
from ..._core.dtype import LEGACY_NAMES
from ..._core.geometry.layout import contiguous_array
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.axes import MATRICES, Last
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from .checks import check_kernel, column_major
from .matmul import hermitian
from .systems import _identity, _solve_triangular, solve_upper

GEQRF = return_type("geqrf", ("a", "tau"))


def _check_dims(name: str, argument: str, tensor: Tensor) -> None:
    if tensor._array.ndim < 2:
        raise RuntimeError(
            f"torch.{name}: {argument} must have at least 2 dimensions. Its shape is {list(tensor._array.shape)}."
        )


def _check_batch(name: str, argument: str, batch: tuple[int, ...], input: Tensor) -> None:
    if batch != input._array.shape[:-2]:
        raise RuntimeError(
            f"torch.{name}: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but got "
            f"{list(batch)}; input.shape is {list(input._array.shape)}"
        )


# ----- the raw form of QR -------------------------------------------------------------------------------------------


def _no_derivative(grads: Any, needs: Any) -> list[Any]:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented: linalg.qr has one.")


@several("GeqrfBackward0", axes=MATRICES, joint=_no_derivative, results=("a", "tau"))
def _geqrf(self: Array) -> Any:
    if self.size == 0:
        return column_major(self), np.zeros((*self.shape[:-2], min(self.shape[-2:])), self.dtype, like=self)
    turned, tau = lapack.qr(self, "raw")
    return column_major(turned.swapaxes(-1, -2)), contiguous_array(tau)


@public(out=write_out, autocast=on(cpu=FULL))
def geqrf(input: Tensor) -> Any:
    """The QR decomposition as LAPACK leaves it: R above, reflectors below the diagonal, and their factors `tau`."""
    _check_dims("geqrf", "input", input)
    check_kernel("geqrf_cpu", input)
    return named(GEQRF, _geqrf(input))


# ----- products with the orthogonal matrix --------------------------------------------------------------------------


def _vectors(raw: Array, count: int) -> Array:
    """V: the first `count` reflecting vectors, with the ones that the raw form leaves out."""
    vectors = np.tril(raw[..., :count], -1)
    diagonal = np.arange(min(vectors.shape[-2:]), like=raw)
    vectors[..., diagonal, diagonal] = 1
    return vectors


def _reflected(raw: Array, tau: Array, other: Array, adjoint: bool) -> Array:
    """Q `other`, or Q^H `other`."""
    vectors = _vectors(raw, tau.shape[-1])
    turned = vectors.swapaxes(-1, -2).conj()
    identity = np.eye(tau.shape[-1], dtype=tau.dtype, like=raw)
    triangle = solve_upper(
        identity + tau[..., None] * np.triu(np.matmul(turned, vectors), 1), identity * tau[..., None]
    )
    if adjoint:
        triangle = triangle.swapaxes(-1, -2).conj()
    return other - np.matmul(vectors, np.matmul(triangle, np.matmul(turned, other)))


def _reflected_gradients(grad: Tensor, raw: Tensor, tau: Tensor, other: Tensor, adjoint: bool) -> tuple[Any, Any, Any]:
    """The gradients of the raw form, of `tau` and of `other` where the result is Q `other`, or Q^H `other`."""
    count = tau._array.shape[-1]
    columns = raw._array.shape[-1]
    strict = raw[..., :count].tril(-1)
    vectors = strict + _wide_identity(strict)
    turned = hermitian(vectors)
    overlaps = (turned @ vectors).triu(1)
    factors = tau.diag_embed()
    unit = _identity(factors) + factors @ overlaps
    triangle = _solve_triangular(unit, factors, True, True, True)
    applied = hermitian(triangle) if adjoint else triangle

    seen, of_seen = turned @ other, turned @ grad
    back = hermitian(applied) @ of_seen
    of_other = grad - vectors @ back
    of_vectors = -(grad @ hermitian(applied @ seen)) - other @ hermitian(back)
    of_triangle = -(of_seen @ hermitian(seen))
    if adjoint:
        of_triangle = hermitian(of_triangle)
    # T = (I + D S)^-1 D, so that dT = (I + D S)^-1 dD (I - S T) - T dS T.
    of_overlaps = -(hermitian(triangle) @ of_triangle @ hermitian(triangle)).triu(1)
    of_vectors = of_vectors + vectors @ (of_overlaps + hermitian(of_overlaps))
    inner = of_triangle @ hermitian(_identity(factors) - overlaps @ triangle)
    of_tau = _solve_triangular(hermitian(unit), inner, False, True, True).diagonal(0, -2, -1)
    of_raw = of_vectors.tril(-1)
    if columns > count:
        of_raw = _widened(of_raw, columns)
    return of_raw, of_tau, of_other


def _wide_identity(like: Tensor) -> Tensor:
    from ..create.constants import eye

    return eye(*like._array.shape[-2:], dtype=like.dtype, device=like._kind.device)


def _widened(matrix: Tensor, columns: int) -> Tensor:
    """`matrix` with further columns of zeros."""
    from ..shape.join import cat

    *front, present = matrix._array.shape
    return cat([matrix, matrix.new_zeros((*front, columns - present))], -1)


def _product_gradients(grads: Any, needs: Any, input: Any, tau: Any) -> list[Any]:
    if grads[0] is None or not tau._array.size:
        return [None, None]
    of_raw, of_tau, _ = _reflected_gradients(grads[0], input, tau, _wide_identity(input), False)
    return [of_raw, of_tau]


@primitive("LinalgHouseholderProductBackward0", axes=Last(2, vectors=("tau",)), joint=_product_gradients)
def _householder_product(input: Array, tau: Array) -> Array:
    found = lapack.orthonormal(input, tau) if type(input) is np.ndarray is type(tau) else None
    if found is None:
        found = _reflected(input, tau, np.eye(*input.shape[-2:], dtype=input.dtype, like=input), False)
    return column_major(found)


@public("linalg.householder_product", function=False, method=False, out=write_out, autocast=on(cpu=FULL))
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflectors in `input` and `tau`, as `geqrf` gives them."""
    name = "linalg.householder_product"
    _check_dims(name, "input", input)
    rows, columns = input._array.shape[-2:]
    if rows < columns:
        raise RuntimeError(
            f"torch.{name}: input.shape[-2] must be greater than or equal to input.shape[-1], but input is "
            f"{rows} by {columns}"
        )
    if not tau._array.ndim:
        raise IndexError(f"Dimension specified as -1 but tensor has no dimensions: {name} needs a vector tau")
    if columns < tau._array.shape[-1]:
        raise RuntimeError(
            f"torch.{name}: input.shape[-1] must be greater than or equal to tau.shape[-1], but they are {columns} and "
            f"{tau._array.shape[-1]}"
        )
    _check_ndim(name, "tau", "one dimension less than input", tau, input, 1)
    _check_batch(name, "tau", tau._array.shape[:-1], input)
    if tau._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"torch.{name}: tau dtype {LEGACY_NAMES[tau._kind.dtype]} does not match input dtype "
            f"{LEGACY_NAMES[input._kind.dtype]}"
        )
    check_kernel("orgqr_cpu", input)
    return _householder_product(input, tau)


@public(out=True, autocast=on(cpu=FULL))
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product` under its old name."""
    return householder_product(input, input2)


def _check_ndim(name: str, argument: str, rule: str, tensor: Tensor, input: Tensor, less: int) -> None:
    ndim, expected = tensor._array.ndim, input._array.ndim
    if ndim != expected - less:
        raise RuntimeError(
            f"torch.{name}: Expected {argument} to have {rule}, but got {argument}.ndim equal to {ndim} and input.ndim "
            f"is equal to {expected}"
        )


def _ormqr_gradients(grads: Any, needs: Any, self: Any, tau: Any, other: Any, left: bool, transpose: bool) -> list[Any]:
    grad = grads[0]
    if grad is None:
        return [None, None, None]
    if left:
        return list(_reflected_gradients(grad, self, tau, other, transpose))
    # X Q = (Q^H X^H)^H
    *of_reflectors, of_other = _reflected_gradients(hermitian(grad), self, tau, hermitian(other), not transpose)
    return [*of_reflectors, hermitian(of_other)]


@primitive("OrmqrBackward0", axes=Last(2, vectors=("tau",)), joint=_ormqr_gradients)
def _ormqr(self: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    if left:
        return column_major(_reflected(self, tau, other, transpose))
    turned = _reflected(self, tau, other.swapaxes(-1, -2).conj(), not transpose)
    return column_major(turned.swapaxes(-1, -2).conj())


@public(out=True, autocast=on(cpu=FULL))
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q `input3` for the square Q with reflectors in `input` and factors in `input2`; `left=False`: `input3` Q;
    `transpose`: with Q^H for Q.
    """
    for argument, each in (("input", input), ("other", input3)):
        _check_dims("ormqr", argument, each)
    side = -2 if left else -1
    if not input2._array.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions: ormqr needs a vector tau")
    size, reflectors, given = input3._array.shape[side], input._array.shape[-1], input2._array.shape[-1]
    if size != input._array.shape[-2]:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2], but they are {size} and "
            f"{input._array.shape[-2]}"
        )
    if given != min(size, reflectors):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1]), but it is {given} "
            f"and not {min(size, reflectors)}"
        )
    _check_ndim("ormqr", "tau", "one dimension less than input", input2, input, 1)
    _check_ndim("ormqr", "other", "the same number of dimensions as input", input3, input, 0)
    _check_batch("ormqr", "tau", input2._array.shape[:-1], input)
    _check_batch("ormqr", "other", input3._array.shape[:-2], input)
    for argument, each in (("tau", input2), ("other", input3)):
        if each._kind.dtype is not input._kind.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {argument} to have the same dtype, but input has dtype "
                f"{LEGACY_NAMES[input._kind.dtype]} and {argument} has dtype {LEGACY_NAMES[each._kind.dtype]}"
            )
    check_kernel("ormqr_cpu", input)
    return _ormqr(input, input2, input3, left, transpose)
