"""Derivatives by backward passes against finite differences, and what else a backward must get right."""

from __future__ import annotations

from typing import Any

from flambeau._core.dtype import float64
from flambeau._core.generator import Generator
from flambeau._core.tensor import Tensor
from flambeau._ops.create.constants import zeros
from flambeau._ops.create.like import zeros_like
from flambeau._ops.random.draws import rand, randn
from flambeau._ops.shape.join import stack
from flambeau.autograd import grad
from flambeau.autograd._gradcheck.check import (
    Check,
    GradcheckError,
    check_like,
    is_close,
    largest,
    mismatch,
    random_direction,
)
from flambeau.autograd._gradcheck.numerical import change_along, numerical_jacobians, part_of, parts_of, unit_vectors
from flambeau.autograd.function import Function

OptionalTensors = tuple[Tensor | None, ...]


def check_backward(check: Check, fast_mode: bool) -> None:
    outputs = check.outputs()
    if not any(item.requires_grad for _, item in outputs):
        _check_constant(check)
        return
    if fast_mode:
        _compare_backward_projections(check, outputs)
    else:
        _compare_backward_jacobians(check, outputs)
    if check.check_batched_grad:
        _check_batched_backward(check, outputs)
    _check_zero_gradients(check, [item for _, item in outputs])
    if check.check_undefined_grad:
        _check_undefined_gradients(check)


def _check_constant(check: Check) -> None:
    """A function without a graph claims not to depend on its inputs."""
    for index, item in check.variables:
        for derivative in numerical_jacobians(check, item):
            for block in (derivative.by_real, derivative.by_imaginary):
                if block is not None and not is_close(block, zeros_like(block), check.rtol, check.atol):
                    raise GradcheckError(
                        "Numerical gradient for function expected to be zero: no output requires gradients, but they"
                        f" change with input {index} by up to {largest(block)}"
                    )


def _compare_backward_jacobians(check: Check, outputs: list[tuple[int, Tensor]]) -> None:
    numerical = [numerical_jacobians(check, item) for _, item in check.variables]
    for position, (output_index, output) in enumerate(outputs):
        if not output.requires_grad:
            continue
        for part, start in parts_of(output):
            analytical = _backward_jacobians(check, output, start)
            again = _backward_jacobians(check, output, start)
            for number, (input_index, _) in enumerate(check.variables):
                _check_repeatable(check, analytical[number], again[number], output_index, input_index)
            for number, (input_index, _) in enumerate(check.variables):
                expected = numerical[number][position].gradient(part)
                if not is_close(analytical[number], expected, check.rtol, check.atol):
                    where = _where(output_index, input_index, output, part, "Jacobian mismatch")
                    raise GradcheckError(mismatch(where, expected, analytical[number]))


def _compare_backward_projections(check: Check, outputs: list[tuple[int, Tensor]]) -> None:
    generator = Generator().manual_seed(0)
    directions = [random_direction(item, generator) for _, item in check.variables]
    changes = [
        change_along(check, item, direction) for (_, item), direction in zip(check.variables, directions, strict=True)
    ]
    for position, (output_index, output) in enumerate(outputs):
        if not output.requires_grad:
            continue
        weights = rand(output.shape, generator=generator, dtype=float64).to(output.device)
        for part, start in parts_of(output):
            vector = (weights * start).to(output.dtype)
            gradients = _flat_gradients(check, output, vector)
            again = _flat_gradients(check, output, vector)
            for number, (input_index, item) in enumerate(check.variables):
                direction = directions[number].reshape(-1)
                numerical = (part_of(changes[number][position], part) * weights).sum()
                # A real number changes along u by the real part of conj(gradient) * u.
                analytical = part_of((gradients[number].conj() * direction).sum(), "real")
                tolerance = check.atol * float(weights.sum()) * float(direction.abs().sum())
                if not is_close(analytical, numerical, check.rtol, tolerance):
                    where = _where(output_index, input_index, output, part, "Jacobian mismatch")
                    expected = numerical_jacobians(check, item)[position].gradient(part)
                    actual = _backward_jacobians(check, output, start)[number]
                    raise GradcheckError(_fast_mismatch(where, numerical, analytical, expected, actual))
                _check_repeatable(check, gradients[number], again[number], output_index, input_index)


def _backward(check: Check, outputs: list[Tensor], vectors: list[Tensor]) -> OptionalTensors:
    """The gradients of all variables; None where the outputs do not depend on one."""
    connected = [(output, vector) for output, vector in zip(outputs, vectors, strict=True) if output.requires_grad]
    if not connected:
        return (None,) * len(check.variables)
    found: OptionalTensors = grad(
        [output for output, _ in connected],
        [item for _, item in check.variables],
        [vector for _, vector in connected],
        retain_graph=True,
        allow_unused=True,
    )
    for (index, item), gradient in zip(check.variables, found, strict=True):
        if gradient is not None:
            check_like(check, gradient, item, f"gradient of input {index}")
    return found


def _flat_gradients(check: Check, output: Tensor, vector: Tensor) -> list[Tensor]:
    found = _backward(check, [output], [vector])
    return [
        (zeros_like(item) if gradient is None else gradient.detach()).reshape(-1)
        for (_, item), gradient in zip(check.variables, found, strict=True)
    ]


def _backward_jacobians(check: Check, output: Tensor, start: complex) -> list[Tensor]:
    """For each variable, the Jacobian by one backward for each element of `output`."""
    columns = [_flat_gradients(check, output, unit * start) for unit in unit_vectors(output)]
    return [
        stack([column[position] for column in columns], dim=-1)
        if columns
        else item.detach().new_zeros((item.nelement(), 0))
        for position, (_, item) in enumerate(check.variables)
    ]


def _check_repeatable(check: Check, first: Tensor, second: Tensor, output_index: int, input_index: int) -> None:
    if not is_close(first, second, 0.0, check.nondet_tol):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives"
            " different values, although analytical gradient matches numerical gradient. The gradient of output"
            f" {output_index} with respect to input {input_index} differs by up to {largest(first - second)}; the"
            f" tolerance for nondeterminism was {check.nondet_tol}. Pass nondet_tol= if that much is expected."
        )


def _where(output_index: int, input_index: int, output: Tensor, part: str, what: str) -> str:
    prefix = f"While considering the {part} part of complex outputs only, " if output.is_complex() else ""
    return f"{prefix}{what} for output {output_index} with respect to input {input_index},"


def _fast_mismatch(where: str, numerical: Tensor, analytical: Tensor, expected: Tensor, actual: Tensor) -> str:
    return (
        f"{where}\nnumerical:{numerical}\nanalytical:{analytical}\n"
        "These are random projections of the Jacobians, as fast mode computes them. In slow mode:\n"
        f"Numerical:\n{expected}\nAnalytical:\n{actual}\n"
        f"The max per-element difference (slow mode) is: {largest(actual - expected)}.\n"
    )


# ----- what else a backward must get right ---------------------------------------------------------------------------


def _check_zero_gradients(check: Check, outputs: list[Tensor]) -> None:
    for (index, _), gradient in zip(
        check.variables, _backward(check, outputs, [zeros_like(item) for item in outputs]), strict=True
    ):
        if gradient is not None and largest(gradient) != 0:
            raise GradcheckError(
                f"backward not multiplied by grad_output: for zero gradients of all outputs, input {index} gets"
                f" gradients of up to {largest(gradient)}"
            )


class _UndefinedGradient(Function):
    """The identity, whose backward sends no gradient on."""

    @staticmethod
    def forward(ctx: Any, item: Tensor) -> Tensor:
        return item.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        return None


def _check_undefined_gradients(check: Check) -> None:
    """Backward must take a missing gradient as zero: for all outputs together, and for each one alone."""
    outputs = [item for _, item in check.outputs() if item.requires_grad]
    choices = [set(range(len(outputs)))] + [{index} for index in range(len(outputs)) if len(outputs) > 1]
    for undefined in choices:
        marked = [_UndefinedGradient.apply(item) if i in undefined else item for i, item in enumerate(outputs)]
        try:
            gradients = _backward(check, marked, [zeros_like(item) for item in outputs])
        except GradcheckError:
            raise
        except Exception as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: it must accept None in place of the"
                f" gradient of outputs {sorted(undefined)} of the differentiable ones, but raised"
                f" {type(error).__name__}: {error}"
            ) from error
        for (index, _), gradient in zip(check.variables, gradients, strict=True):
            if gradient is not None and largest(gradient) != 0:
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero,"
                    f" but the gradient of input {index} goes up to {largest(gradient)}"
                )


BATCH = 2


def _check_batched_backward(check: Check, outputs: list[tuple[int, Tensor]]) -> None:
    """Backward over a batch of gradients must give what it gives for one after the other."""
    variables = [item for _, item in check.variables]
    for output_index, output in outputs:
        if not output.requires_grad:
            continue
        batch = randn((BATCH, *output.shape), dtype=output.dtype, device=output.device)
        expected = [_flat_gradients(check, output, vector) for vector in batch]
        try:
            found = grad([output], variables, [batch], retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for number, (input_index, item) in enumerate(check.variables):
            gradient = found[number]
            if gradient is None:
                gradient = zeros((BATCH, *item.shape), dtype=item.dtype, device=item.device)
            single = stack([flat[number] for flat in expected])
            compare_batched(check, gradient, single, f"output {output_index} and input {input_index}")


def compare_batched(check: Check, batched: Tensor, single: Tensor, where: str) -> None:
    batched, single = batched.reshape(-1), single.reshape(-1)
    if not is_close(batched, single, check.rtol, check.atol):
        raise GradcheckError(
            f"Batched gradients differ from those computed one by one, for {where}:\ngot: {batched}\n"
            f"expected: {single}\nThe largest difference is {largest(batched - single)}."
        )
