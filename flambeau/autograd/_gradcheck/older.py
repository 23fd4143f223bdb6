"""Functions of PyTorch's module that are about to go, and that programs still import."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core.tensor import Tensor
from flambeau._ops.create.like import zeros_like
from flambeau._ops.shape.join import stack
from flambeau.autograd import grad
from flambeau.autograd._gradcheck.check import as_tuple, is_variable
from flambeau.autograd._gradcheck.numerical import moved, unit_vectors
from flambeau.autograd.grad_mode import no_grad

OptionalTensors = tuple[Tensor | None, ...]


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> list[Tensor]:
    """The derivatives of the first output of `fn(inputs)` by each input in `target`, by differences."""
    _warn_of_older("get_numerical_jacobian")
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out")
    chosen = [each for each in as_tuple(inputs if target is None else target) if is_variable(each)]
    return [_jacobians(fn, inputs, each, eps)[0] for each in chosen]


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any], input_idx: int, inputs: Any, outputs: Any, eps: float, input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The derivatives of all outputs of `fn(*inputs)` by one input, by differences."""
    item = inputs[input_idx] if input is None else input
    return _jacobians(lambda given: fn(*given), inputs, item, eps)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The derivatives of an output by the inputs, backwards; whether a second pass agrees; whether types fit."""
    _warn_of_older("get_analytical_jacobian")
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out")
    variables = [each for each in as_tuple(inputs) if is_variable(each)]

    def once() -> list[list[OptionalTensors]]:
        return [[grad(output, variables, unit, retain_graph=True, allow_unused=True)] for unit in unit_vectors(output)]

    first, second = once(), once()

    def columns(passes: list[list[OptionalTensors]], at: int) -> Tensor:
        item = variables[at]
        zeros = zeros_like(item).reshape(-1)
        return stack([zeros if row[0][at] is None else _flat(row[0][at]) for row in passes], 1)

    jacobians = tuple(columns(first, at) for at in range(len(variables)))
    repeated = tuple(columns(second, at) for at in range(len(variables)))
    apart = max(
        (float((a - b).abs().max()) for a, b in zip(jacobians, repeated, strict=True) if a.numel()), default=0.0
    )
    found = [(item, grad) for row in first for item, grad in zip(variables, row[0], strict=True) if grad is not None]
    sizes = all(item.shape == grad.shape for item, grad in found)
    types = all(item.dtype is grad.dtype for item, grad in found)
    return jacobians, apart <= nondet_tol, sizes, types


def _jacobians(fn: Callable[..., Any], inputs: Any, item: Tensor, eps: float) -> tuple[Tensor, ...]:
    """For each output its derivatives by one input, a row for each element of that."""
    units = [unit.reshape(-1) for unit in unit_vectors(item)]
    rows: list[list[Tensor]] = []
    for unit in units:
        step = unit.reshape(item.shape) * eps
        with no_grad():
            with moved(item, step):
                above = [each.detach().clone() for each in as_tuple(fn(inputs))]
            with moved(item, -step):
                below = [each.detach().clone() for each in as_tuple(fn(inputs))]
        rows.append([((high - low) / (2 * eps)).reshape(-1) for high, low in zip(above, below, strict=True)])
    return tuple(stack(list(each)) for each in zip(*rows, strict=True))


def _warn_of_older(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch.",
        FutureWarning,
        stacklevel=3,
    )


def _flat(tensor: Any) -> Tensor:
    flat: Tensor = tensor.reshape(-1)
    return flat
