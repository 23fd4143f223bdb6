"""Derivatives by forward mode against finite differences."""

from __future__ import annotations

from typing import Any

from flambeau._core.generator import Generator
from flambeau._core.slots import SLOTS
from flambeau._core.tensor import Tensor
from flambeau._ops.create.like import zeros_like
from flambeau._ops.random.draws import randn
from flambeau._ops.shape.join import stack
from flambeau.autograd import forward_ad
from flambeau.autograd._gradcheck.backward import BATCH, compare_batched
from flambeau.autograd._gradcheck.check import (
    Check,
    GradcheckError,
    check_like,
    is_close,
    is_variable,
    largest,
    mismatch,
    random_direction,
)
from flambeau.autograd._gradcheck.numerical import change_along, evaluate, numerical_jacobians, stacked, unit_vectors


def check_forward(check: Check, fast_mode: bool) -> None:
    generator = Generator().manual_seed(0)
    outputs = check.outputs()
    for input_index, item in check.variables:
        direction = random_direction(item, generator)
        tangents = _tangents(check, item, direction)
        if fast_mode:
            tolerance = check.atol * float(direction.abs().sum())
            changes = change_along(check, item, direction)
            for (index, output), tangent, change in zip(outputs, tangents, changes, strict=True):
                if output.requires_grad and not is_close(tangent, change, check.rtol, tolerance):
                    raise GradcheckError(mismatch(_forward_where(index, input_index), change, tangent))
        else:
            _compare_forward_jacobians(check, input_index, item, outputs)
        if check.check_batched_forward_grad:
            _check_batched_tangents(check, input_index, item)
        if check.check_undefined_grad:
            _check_undefined_tangents(check, input_index, item, direction, tangents)


def _compare_forward_jacobians(check: Check, input_index: int, item: Tensor, outputs: list[tuple[int, Tensor]]) -> None:
    numerical = numerical_jacobians(check, item)
    for start in (1, 1j) if item.is_complex() else (1,):
        analytical = _forward_jacobians(check, item, start)
        for (output_index, output), derivative, rows in zip(outputs, numerical, analytical, strict=True):
            by_imaginary = derivative.by_imaginary
            expected = derivative.by_real if start == 1 or by_imaginary is None else by_imaginary
            actual = stacked(rows, output.detach())
            if output.requires_grad and not is_close(actual, expected, check.rtol, check.atol):
                raise GradcheckError(mismatch(_forward_where(output_index, input_index), expected, actual))


def _check_batched_tangents(check: Check, input_index: int, item: Tensor) -> None:
    """Forward mode over a batch of tangents must give what it gives for one after the other."""
    batch = randn((BATCH, *item.shape), dtype=item.dtype, device=item.device)
    single = [_tangents(check, item, each) for each in batch]
    try:
        batched = SLOTS.vmap(lambda direction: tuple(_tangents(check, item, direction)))(batch)
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}") from error
    for index, found in enumerate(batched):
        expected = stack([tangents[index] for tangents in single])
        compare_batched(check, found, expected, f"output {index} and input {input_index}, in forward mode")


def _check_undefined_tangents(
    check: Check, input_index: int, item: Tensor, direction: Tensor, tangents: list[Tensor]
) -> None:
    """Inputs without a tangent must count as inputs with a zero tangent."""
    with_zeros = _tangents(check, item, direction, zeros_for_others=True)
    for index, (left, right) in enumerate(zip(tangents, with_zeros, strict=True)):
        if not is_close(left, right, check.rtol, check.atol):
            raise GradcheckError(
                f"Forward mode treats a missing tangent unlike a zero one: along input {input_index}, differentiable"
                f" output {index} differs by up to {largest(left - right)}"
            )


def _tangents(check: Check, item: Tensor, direction: Tensor, zeros_for_others: bool = False) -> list[Tensor]:
    """The derivative of every output along one direction of one input, by forward mode."""

    def dual(argument: Any) -> Any:
        if argument is item:
            return forward_ad.make_dual(argument, direction)
        if zeros_for_others and is_variable(argument):
            return forward_ad.make_dual(argument, zeros_like(argument))
        return argument

    with forward_ad.dual_level():
        tangents = []
        for index, output in check.outputs(tuple(dual(argument) for argument in check.inputs)):
            primal, tangent = forward_ad.unpack_dual(output)
            if tangent is None:
                tangent = zeros_like(primal)
            check_like(check, tangent, primal, f"forward-mode derivative of output {index}")
            tangents.append(tangent.detach())
        return tangents


def _forward_jacobians(check: Check, item: Tensor, start: complex) -> list[list[Tensor]]:
    """For each output, the rows of its Jacobian, one pass of `func` for each element of `item`."""
    by_unit = [_tangents(check, item, unit * start) for unit in unit_vectors(item)]
    return [[tangents[position].reshape(-1) for tangents in by_unit] for position in range(len(evaluate(check)))]


def _forward_where(output_index: int, input_index: int) -> str:
    return (
        f"Jacobian computed with forward mode mismatch for output {output_index} with respect to input {input_index},"
    )
