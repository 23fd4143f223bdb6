"""What one call of `gradcheck` was asked, and how numbers are compared in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau._core.device import LAYOUTS, strided
from flambeau._core.dtype import float64, promote_types
from flambeau._core.tensor import Tensor
from flambeau._ops.pointwise.compare import allclose
from flambeau._ops.pointwise.complex_make import complex_
from flambeau._ops.random.draws import rand

Func = Callable[..., Any]


class GradcheckError(RuntimeError):
    """A derivative that `gradcheck` or `gradgradcheck` found to be wrong."""


@dataclass(frozen=True)
class Check:
    """What one call of gradcheck was asked: the function, its inputs and the options."""

    func: Func
    inputs: tuple[Any, ...]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool

    @property
    def variables(self) -> list[tuple[int, Tensor]]:
        """The inputs to differentiate by, each with its position among the arguments."""
        return [(index, item) for index, item in enumerate(self.inputs) if is_variable(item)]

    def outputs(self, inputs: tuple[Any, ...] | None = None) -> list[tuple[int, Tensor]]:
        """The differentiable outputs, each with its position among the results."""
        found = as_tuple(self.func(*(self.inputs if inputs is None else inputs)))
        for index, item in enumerate(found):
            if not isinstance(item, Tensor):
                raise ValueError(f"gradcheck expects the function to return Tensors, but output {index} is {item!r}.")
            if item.layout is not strided:
                kind = "MKLDNN" if item.layout is LAYOUTS["_mkldnn"] else "Sparse"
                raise ValueError(
                    f"{kind} output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the "
                    f"output of fn for gradcheck: output {index} has layout {item.layout}."
                )
        return [(index, item) for index, item in enumerate(found) if is_differentiable(item)]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_variable(item: Any) -> bool:
    return isinstance(item, Tensor) and bool(item.requires_grad)


def is_differentiable(item: Any) -> bool:
    return isinstance(item, Tensor) and bool(item.is_floating_point() or item.is_complex())


def random_direction(item: Tensor, generator: Any) -> Tensor:
    """A random vector of length 1 and the shape of `item`, without small entries that would hide an error."""

    def entries() -> Tensor:
        return rand(item.shape, generator=generator, dtype=float64).to(item.device) + 0.1

    direction = complex_(entries(), entries()) if item.is_complex() else entries()
    length = direction.abs().square().sum().sqrt()
    return (direction / length).to(item.dtype)


def check_like(check: Check, derivative: Tensor, model: Tensor, what: str) -> None:
    if derivative.shape != model.shape:
        raise GradcheckError(f"The {what} has incorrect size: {derivative.shape}, expected {model.shape}")
    if check.check_grad_dtypes and derivative.dtype != model.dtype:
        raise GradcheckError(f"The {what} has incorrect dtype: {derivative.dtype}, expected {model.dtype}")


def is_close(actual: Tensor, expected: Tensor, rtol: float, atol: float) -> bool:
    dtype = promote_types(actual.dtype, expected.dtype)
    return bool(allclose(actual.to(dtype), expected.to(actual.device, dtype), rtol=rtol, atol=atol))


def largest(difference: Tensor) -> float:
    return float(difference.detach().abs().max()) if difference.nelement() else 0.0


def mismatch(where: str, numerical: Any, analytical: Any) -> str:
    return (
        f"{where}\nnumerical:{numerical}\nanalytical:{analytical}\n"
        f"The largest difference is {largest(analytical - numerical)}.\n"
    )
