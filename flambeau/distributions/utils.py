"""What distributions share: broadcasting of parameters, probabilities and logits, properties computed on demand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from numbers import Real
from typing import Any, Generic, TypeVar, overload

import flambeau
from flambeau import Size, Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060

T = TypeVar("T")
R = TypeVar("R")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one common shape from tensors and numbers; numbers take the dtype and device of the first tensor.

    >>> [tuple(t.shape) for t in broadcast_all(flambeau.zeros(3), 1.0)]
    [(3,), (3,)]
    """
    if not all(_is_tensor_like(value) or isinstance(value, Real) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            f"__torch_function__, but got {', '.join(type(value).__name__ for value in values)}."
        )
    model = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = flambeau.get_default_dtype() if model is None else model.dtype
    device = None if model is None else model.device
    return tuple(
        flambeau.broadcast_tensors(
            *(
                value if _is_tensor_like(value) else flambeau.tensor(value, dtype=dtype, device=device)
                for value in values
            )
        )
    )


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _standard_normal(shape: Size, dtype: Any, device: Any) -> Tensor:
    return flambeau.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[:-dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log-odds (`is_binary`), or from unnormalised log-probabilities along the last dimension."""
    return flambeau.sigmoid(logits) if is_binary else flambeau.softmax(logits, -1)


@cache
def _smallest_step(dtype: flambeau.dtype) -> float:
    return float(flambeau.finfo(dtype).eps)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved into the open interval (0, 1), by the dtype's smallest step."""
    eps = _smallest_step(probs.dtype)
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`, finite even for probabilities of 0 and 1."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property(Generic[T, R]):
    """A property that is computed, with gradient, at its first use and then stored on the instance."""

    def __init__(self, wrapped: Callable[[T], R]) -> None:
        self.wrapped: Callable[[T], R] = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]  # typeshed wants a function

    @overload
    def __get__(self, instance: None, obj_type: Any = None) -> _lazy_property_and_property[T, R]: ...

    @overload
    def __get__(self, instance: T, obj_type: Any = None) -> R: ...

    def __get__(self, instance: T | None, obj_type: Any = None) -> R | _lazy_property_and_property[T, R]:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with flambeau.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property[T, R], property):
    """What a class shows for its lazy property: documentation tools recognise a `property`."""

    def __init__(self, wrapped: Callable[[T], R]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below diagonal `diag` of square matrices, row by row, as vectors."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = flambeau.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices from vectors of their entries on and below diagonal `diag`, row by row."""
    count = vec.shape[-1]
    # With m = n + diag there are m * (m + 1) / 2 entries, of which diag * (diag + 1) lie outside if diag > 0.
    outside = max(diag, 0) * (diag + 1)
    root = ((1 + 8 * (count + outside)) ** 0.5 - 1) / 2 - diag
    n = round(root)
    if abs(root - n) > flambeau.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    rows, columns = flambeau.tril_indices(n, n, diag, device=vec.device)
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., rows, columns] = vec
    return matrix
