"""`gradcheck` and `gradgradcheck`: derivatives by autograd against derivatives by finite differences.

Conventions. A Jacobian here is a matrix with one row for each element of the input and one column for each element of
the output. A complex output counts as two real ones, its real and its imaginary part; the gradient of a real number
by a complex z = x + iy is d/dx + i d/dy, so that `backward` is started with 1 for the real part and with 1j for the
imaginary part.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import flambeau
from flambeau._core.tensor import Tensor
from flambeau.autograd.function import Function

Tensors = tuple[Tensor, ...]
OptionalTensors = tuple[Tensor | None, ...]

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Func = Callable[..., Any]


class GradcheckError(RuntimeError):
    """A derivative that `gradcheck` or `gradgradcheck` found to be wrong."""


@dataclass(frozen=True)
class _Check:
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

    @property
    def variables(self) -> list[tuple[int, Tensor]]:
        """The inputs to differentiate by, each with its position among the arguments."""
        return [(index, item) for index, item in enumerate(self.inputs) if _is_variable(item)]

    def outputs(self, inputs: tuple[Any, ...] | None = None) -> list[tuple[int, Tensor]]:
        """The differentiable outputs, each with its position among the results."""
        found = _as_tuple(self.func(*(self.inputs if inputs is None else inputs)))
        for index, item in enumerate(found):
            if not isinstance(item, flambeau.Tensor):
                raise ValueError(f"gradcheck expects the function to return Tensors, but output {index} is {item!r}.")
        return [(index, item) for index, item in enumerate(found) if _is_differentiable(item)]


def gradcheck(
    func: Func,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the derivatives of `func` at `inputs` with finite differences of step `eps`.

    The inputs that require gradients should be float64 or complex128. `fast_mode` compares one random projection of
    each Jacobian instead of all its elements. `masked` concerns sparse tensors and changes nothing for strided ones.
    A wrong derivative raises `GradcheckError`, or gives False with `raise_exception=False`.

    >>> import flambeau
    >>> x = flambeau.tensor([0.5, 2.], dtype=flambeau.float64, requires_grad=True)
    >>> flambeau.autograd.gradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if check_batched_forward_grad:
        raise NotImplementedError("check_batched_forward_grad=True needs forward mode under vmap, which is missing")
    switches = (check_undefined_grad, check_grad_dtypes, check_batched_grad)
    check = _Check(func, _as_tuple(inputs), eps, atol, rtol, nondet_tol, *switches)
    try:
        _check_inputs(check)
        if check_forward_ad:
            _check_forward(check, fast_mode)
        if check_backward_ad:
            _check_backward(check, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Func,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of `func`: `gradcheck` of its backward, by the inputs and by `grad_outputs`.

    Without `grad_outputs` random ones are taken.

    >>> import flambeau
    >>> x = flambeau.tensor([0.5, 2.], dtype=flambeau.float64, requires_grad=True)
    >>> flambeau.autograd.gradgradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = [item for item in _as_tuple(func(*arguments)) if _is_differentiable(item)]
        cotangents = tuple(_random_grad_output(item, gen_non_contig_grad_outputs) for item in outputs)
    else:
        cotangents = _as_tuple(grad_outputs)
    count = len(cotangents)

    def gradient(*items: Any) -> Tensors:
        function_inputs, vectors = (items[:-count], items[-count:]) if count else (items, ())
        variables = [item for item in function_inputs if _is_variable(item)]
        with flambeau.enable_grad():
            results = [item for item in _as_tuple(func(*function_inputs)) if _is_differentiable(item)]
            found = flambeau.autograd.grad(results, variables, vectors, create_graph=True, allow_unused=True)
        return tuple(item for item in found if item is not None)

    return gradcheck(
        gradient,
        arguments + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_variable(item: Any) -> bool:
    return isinstance(item, flambeau.Tensor) and bool(item.requires_grad)


def _is_differentiable(item: Any) -> bool:
    return isinstance(item, flambeau.Tensor) and bool(item.is_floating_point() or item.is_complex())


def _random_grad_output(output: Tensor, non_contiguous: bool) -> Tensor:
    vector = flambeau.randn(output.shape, dtype=output.dtype, device=output.device)
    if non_contiguous and vector.ndim:
        vector = flambeau.stack([vector, vector], dim=-1)[..., 0]
    return vector.detach().requires_grad_()


def _check_inputs(check: _Check) -> None:
    if not check.variables:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for index, item in check.variables:
        if item.layout is not flambeau.strided:
            raise ValueError(f"gradcheck supports strided tensors only, but input #{index} has layout {item.layout}.")
        if item.dtype not in (flambeau.float64, flambeau.complex128):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check"
                f" will likely fail: finite differences need more digits than {item.dtype} has.",
                stacklevel=4,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(item.stride(), item.shape, strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are"
                " non-overlapping to be able to compute the numerical gradients correctly. You should call"
                " .contiguous on the input before passing it to gradcheck."
            )
        if not item.is_leaf:
            item.retain_grad()


# Numerical derivatives


def _evaluate(check: _Check) -> list[Tensor]:
    """The outputs at the present inputs, in memory of their own: an output may be a view of an input."""
    with flambeau.no_grad():
        return [item.detach().clone() for _, item in check.outputs()]


@contextlib.contextmanager
def _moved(item: Tensor, offset: Tensor) -> Iterator[None]:
    """Add `offset` to the values of an input; `.data` leaves the version alone, which graphs already made check."""
    values = item.data
    before = values.clone()
    values.add_(offset)
    try:
        yield
    finally:
        values.copy_(before)


def _directional(check: _Check, item: Tensor, direction: Tensor) -> list[Tensor]:
    """The derivative of every output along one direction of one input, by a central difference."""
    step = direction * check.eps
    with _moved(item, step):
        above = _evaluate(check)
    with _moved(item, -step):
        below = _evaluate(check)
    return [(high - low) / (2 * check.eps) for high, low in zip(above, below, strict=True)]


def _unit_vectors(item: Tensor) -> Iterator[Tensor]:
    """The unit vectors of the shape of `item`, in the order of its elements."""
    for index in itertools.product(*(range(size) for size in item.shape)):
        unit = flambeau.zeros(item.shape, dtype=item.dtype, device=item.device)
        unit[index] = 1
        yield unit


def _numerical_jacobians(check: _Check, item: Tensor) -> list[_Derivative]:
    """For each output, its derivatives by the real and, where there is one, by the imaginary part of `item`."""
    outputs = _evaluate(check)
    by_real: list[list[Tensor]] = [[] for _ in outputs]
    by_imaginary: list[list[Tensor]] = [[] for _ in outputs]
    for unit in _unit_vectors(item):
        for rows, change in zip(by_real, _directional(check, item, unit), strict=True):
            rows.append(change.reshape(-1))
        if item.is_complex():
            for rows, change in zip(by_imaginary, _directional(check, item, unit * 1j), strict=True):
                rows.append(change.reshape(-1))
    return [
        _Derivative(_stack(real, output), _stack(imaginary, output) if item.is_complex() else None)
        for real, imaginary, output in zip(by_real, by_imaginary, outputs, strict=True)
    ]


def _stack(rows: list[Tensor], output: Tensor) -> Tensor:
    return flambeau.stack(rows) if rows else output.new_zeros((0, output.nelement()))


@dataclass(frozen=True)
class _Derivative:
    """Derivatives of one output by the real and the imaginary part of one input (None for a real input)."""

    by_real: Tensor
    by_imaginary: Tensor | None

    def gradient(self, part: str) -> Tensor:
        """The Jacobian that backward should give for the real or the imaginary part of the output."""
        if self.by_imaginary is None:
            return _part(self.by_real, part)
        return flambeau.complex(_part(self.by_real, part), _part(self.by_imaginary, part))


def _part(tensor: Tensor, part: str) -> Tensor:
    if tensor.is_complex():
        return tensor.real if part == "real" else tensor.imag
    return tensor


def _parts(output: Tensor) -> list[tuple[str, complex]]:
    """The real components of an output, each with the number that starts backward from it."""
    return [("real", 1), ("imaginary", 1j)] if output.is_complex() else [("real", 1)]


# Derivatives by backward


def _backward(check: _Check, outputs: list[Tensor], vectors: list[Tensor]) -> OptionalTensors:
    """The gradients of all variables; None where the outputs do not depend on one."""
    connected = [(output, vector) for output, vector in zip(outputs, vectors, strict=True) if output.requires_grad]
    if not connected:
        return (None,) * len(check.variables)
    found: OptionalTensors = flambeau.autograd.grad(
        [output for output, _ in connected],
        [item for _, item in check.variables],
        [vector for _, vector in connected],
        retain_graph=True,
        allow_unused=True,
    )
    for (index, item), gradient in zip(check.variables, found, strict=True):
        if gradient is not None:
            _check_like(check, gradient, item, f"gradient of input {index}")
    return found


def _check_like(check: _Check, derivative: Tensor, model: Tensor, what: str) -> None:
    if derivative.shape != model.shape:
        raise GradcheckError(f"The {what} has incorrect size: {derivative.shape}, expected {model.shape}")
    if check.check_grad_dtypes and derivative.dtype != model.dtype:
        raise GradcheckError(f"The {what} has incorrect dtype: {derivative.dtype}, expected {model.dtype}")


def _flat_gradients(check: _Check, output: Tensor, vector: Tensor) -> list[Tensor]:
    found = _backward(check, [output], [vector])
    return [
        (flambeau.zeros_like(item) if gradient is None else gradient.detach()).reshape(-1)
        for (_, item), gradient in zip(check.variables, found, strict=True)
    ]


def _backward_jacobians(check: _Check, output: Tensor, start: complex) -> list[Tensor]:
    """For each variable, the Jacobian by one backward for each element of `output`."""
    columns = [_flat_gradients(check, output, unit * start) for unit in _unit_vectors(output)]
    return [
        flambeau.stack([column[position] for column in columns], dim=-1)
        if columns
        else item.detach().new_zeros((item.nelement(), 0))
        for position, (_, item) in enumerate(check.variables)
    ]


def _check_backward(check: _Check, fast_mode: bool) -> None:
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


def _check_constant(check: _Check) -> None:
    """A function without a graph claims not to depend on its inputs."""
    for index, item in check.variables:
        for derivative in _numerical_jacobians(check, item):
            for block in (derivative.by_real, derivative.by_imaginary):
                if block is not None and not _close(block, flambeau.zeros_like(block), check.rtol, check.atol):
                    raise GradcheckError(
                        "Numerical gradient for function expected to be zero: no output requires gradients, but they"
                        f" change with input {index} by up to {_largest(block)}"
                    )


def _compare_backward_jacobians(check: _Check, outputs: list[tuple[int, Tensor]]) -> None:
    numerical = [_numerical_jacobians(check, item) for _, item in check.variables]
    for position, (output_index, output) in enumerate(outputs):
        for part, start in _parts(output):
            analytical = _backward_jacobians(check, output, start)
            again = _backward_jacobians(check, output, start)
            for number, (input_index, _) in enumerate(check.variables):
                expected = numerical[number][position].gradient(part)
                if not _close(analytical[number], expected, check.rtol, check.atol):
                    where = _where(output_index, input_index, output, part, "Jacobian mismatch")
                    raise GradcheckError(_mismatch(where, expected, analytical[number]))
                _check_repeatable(check, analytical[number], again[number], output_index, input_index)


def _check_repeatable(check: _Check, first: Tensor, second: Tensor, output_index: int, input_index: int) -> None:
    if not _close(first, second, 0.0, check.nondet_tol):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives"
            " different values, although analytical gradient matches numerical gradient. The gradient of output"
            f" {output_index} with respect to input {input_index} differs by up to {_largest(first - second)}; the"
            f" tolerance for nondeterminism was {check.nondet_tol}. Pass nondet_tol= if that much is expected."
        )


def _where(output_index: int, input_index: int, output: Tensor, part: str, what: str) -> str:
    prefix = f"While considering the {part} part of complex outputs only, " if output.is_complex() else ""
    return f"{prefix}{what} for output {output_index} with respect to input {input_index},"


def _mismatch(where: str, numerical: Any, analytical: Any) -> str:
    return (
        f"{where}\nnumerical:{numerical}\nanalytical:{analytical}\n"
        f"The largest difference is {_largest(analytical - numerical)}.\n"
    )


def _largest(difference: Tensor) -> float:
    return float(difference.detach().abs().max()) if difference.nelement() else 0.0


def _close(actual: Tensor, expected: Tensor, rtol: float, atol: float) -> bool:
    dtype = flambeau.promote_types(actual.dtype, expected.dtype)
    return bool(flambeau.allclose(actual.to(dtype), expected.to(actual.device, dtype), rtol=rtol, atol=atol))


# Fast mode: one random projection of each Jacobian


def _random_direction(item: Tensor, generator: Any) -> Tensor:
    """A random vector of length 1 and the shape of `item`, without small entries that would hide an error."""

    def entries() -> Tensor:
        return flambeau.rand(item.shape, generator=generator, dtype=flambeau.float64).to(item.device) + 0.1

    direction = flambeau.complex(entries(), entries()) if item.is_complex() else entries()
    length = direction.abs().square().sum().sqrt()
    return (direction / length).to(item.dtype)


def _compare_backward_projections(check: _Check, outputs: list[tuple[int, Tensor]]) -> None:
    generator = flambeau.Generator().manual_seed(0)
    directions = [_random_direction(item, generator) for _, item in check.variables]
    changes = [
        _directional(check, item, direction) for (_, item), direction in zip(check.variables, directions, strict=True)
    ]
    for position, (output_index, output) in enumerate(outputs):
        weights = flambeau.rand(output.shape, generator=generator, dtype=flambeau.float64).to(output.device)
        for part, start in _parts(output):
            vector = (weights * start).to(output.dtype)
            gradients = _flat_gradients(check, output, vector)
            again = _flat_gradients(check, output, vector)
            for number, (input_index, item) in enumerate(check.variables):
                direction = directions[number].reshape(-1)
                numerical = (_part(changes[number][position], part) * weights).sum()
                # A real number changes along u by the real part of conj(gradient) * u.
                analytical = _part((gradients[number].conj() * direction).sum(), "real")
                tolerance = check.atol * float(weights.sum()) * float(direction.abs().sum())
                if not _close(analytical, numerical, check.rtol, tolerance):
                    where = _where(output_index, input_index, output, part, "Jacobian mismatch")
                    expected = _numerical_jacobians(check, item)[position].gradient(part)
                    actual = _backward_jacobians(check, output, start)[number]
                    raise GradcheckError(_fast_mismatch(where, numerical, analytical, expected, actual))
                _check_repeatable(check, gradients[number], again[number], output_index, input_index)


def _fast_mismatch(where: str, numerical: Tensor, analytical: Tensor, expected: Tensor, actual: Tensor) -> str:
    return (
        f"{where}\nnumerical:{numerical}\nanalytical:{analytical}\n"
        "These are random projections of the Jacobians, as fast mode computes them. In slow mode:\n"
        f"Numerical:\n{expected}\nAnalytical:\n{actual}\n"
        f"The max per-element difference (slow mode) is: {_largest(actual - expected)}.\n"
    )


# What else a backward must get right


def _check_zero_gradients(check: _Check, outputs: list[Tensor]) -> None:
    for (index, _), gradient in zip(
        check.variables, _backward(check, outputs, [flambeau.zeros_like(item) for item in outputs]), strict=True
    ):
        if gradient is not None and _largest(gradient) != 0:
            raise GradcheckError(
                f"backward not multiplied by grad_output: for zero gradients of all outputs, input {index} gets"
                f" gradients of up to {_largest(gradient)}"
            )


class _UndefinedGradient(Function):
    """The identity, whose backward sends no gradient on."""

    @staticmethod
    def forward(ctx: Any, item: Tensor) -> Tensor:
        return item.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        return None


def _check_undefined_gradients(check: _Check) -> None:
    """Backward must take a missing gradient as zero: for all outputs together, and for each one alone."""
    outputs = [item for _, item in check.outputs() if item.requires_grad]
    choices = [set(range(len(outputs)))] + [{index} for index in range(len(outputs)) if len(outputs) > 1]
    for undefined in choices:
        marked = [_UndefinedGradient.apply(item) if i in undefined else item for i, item in enumerate(outputs)]
        try:
            gradients = _backward(check, marked, [flambeau.zeros_like(item) for item in outputs])
        except GradcheckError:
            raise
        except Exception as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: it must accept None in place of the"
                f" gradient of outputs {sorted(undefined)} of the differentiable ones, but raised"
                f" {type(error).__name__}: {error}"
            ) from error
        for (index, _), gradient in zip(check.variables, gradients, strict=True):
            if gradient is not None and _largest(gradient) != 0:
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero,"
                    f" but the gradient of input {index} goes up to {_largest(gradient)}"
                )


_BATCH = 2


def _check_batched_backward(check: _Check, outputs: list[tuple[int, Tensor]]) -> None:
    """Backward over a batch of gradients must give what it gives for one after the other."""
    variables = [item for _, item in check.variables]
    for output_index, output in outputs:
        if not output.requires_grad:
            continue
        batch = flambeau.randn((_BATCH, *output.shape), dtype=output.dtype, device=output.device)
        expected = [_flat_gradients(check, output, vector) for vector in batch]
        try:
            found = flambeau.autograd.grad(
                [output], variables, [batch], retain_graph=True, allow_unused=True, is_grads_batched=True
            )
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for number, (input_index, item) in enumerate(check.variables):
            gradient = found[number]
            if gradient is None:
                gradient = flambeau.zeros((_BATCH, *item.shape), dtype=item.dtype, device=item.device)
            single = flambeau.stack([flat[number] for flat in expected])
            _compare_batched(check, gradient, single, f"output {output_index} and input {input_index}")


def _compare_batched(check: _Check, batched: Tensor, single: Tensor, where: str) -> None:
    batched, single = batched.reshape(-1), single.reshape(-1)
    if not _close(batched, single, check.rtol, check.atol):
        raise GradcheckError(
            f"Batched gradients differ from those computed one by one, for {where}:\ngot: {batched}\n"
            f"expected: {single}\nThe largest difference is {_largest(batched - single)}."
        )


# Derivatives by forward mode


def _tangents(check: _Check, item: Tensor, direction: Tensor, zeros_for_others: bool = False) -> list[Tensor]:
    """The derivative of every output along one direction of one input, by forward mode."""
    forward_ad = flambeau.autograd.forward_ad

    def dual(argument: Any) -> Any:
        if argument is item:
            return forward_ad.make_dual(argument, direction)
        if zeros_for_others and _is_variable(argument):
            return forward_ad.make_dual(argument, flambeau.zeros_like(argument))
        return argument

    with forward_ad.dual_level():
        tangents = []
        for index, output in check.outputs(tuple(dual(argument) for argument in check.inputs)):
            primal, tangent = forward_ad.unpack_dual(output)
            if tangent is None:
                tangent = flambeau.zeros_like(primal)
            _check_like(check, tangent, primal, f"forward-mode derivative of output {index}")
            tangents.append(tangent.detach())
        return tangents


def _forward_jacobians(check: _Check, item: Tensor, start: complex) -> list[list[Tensor]]:
    """For each output, the rows of its Jacobian, one pass of `func` for each element of `item`."""
    by_unit = [_tangents(check, item, unit * start) for unit in _unit_vectors(item)]
    return [[tangents[position].reshape(-1) for tangents in by_unit] for position in range(len(_evaluate(check)))]


def _check_forward(check: _Check, fast_mode: bool) -> None:
    generator = flambeau.Generator().manual_seed(0)
    outputs = check.outputs()
    for input_index, item in check.variables:
        direction = _random_direction(item, generator)
        tangents = _tangents(check, item, direction)
        if fast_mode:
            tolerance = check.atol * float(direction.abs().sum())
            changes = _directional(check, item, direction)
            for (index, _), tangent, change in zip(outputs, tangents, changes, strict=True):
                if not _close(tangent, change, check.rtol, tolerance):
                    raise GradcheckError(_mismatch(_forward_where(index, input_index), change, tangent))
        else:
            _compare_forward_jacobians(check, input_index, item, outputs)
        if check.check_undefined_grad:
            _check_undefined_tangents(check, input_index, item, direction, tangents)


def _forward_where(output_index: int, input_index: int) -> str:
    return (
        f"Jacobian computed with forward mode mismatch for output {output_index} with respect to input {input_index},"
    )


def _compare_forward_jacobians(
    check: _Check, input_index: int, item: Tensor, outputs: list[tuple[int, Tensor]]
) -> None:
    numerical = _numerical_jacobians(check, item)
    for start in (1, 1j) if item.is_complex() else (1,):
        analytical = _forward_jacobians(check, item, start)
        for (output_index, output), derivative, rows in zip(outputs, numerical, analytical, strict=True):
            by_imaginary = derivative.by_imaginary
            expected = derivative.by_real if start == 1 or by_imaginary is None else by_imaginary
            actual = _stack(rows, output.detach())
            if not _close(actual, expected, check.rtol, check.atol):
                raise GradcheckError(_mismatch(_forward_where(output_index, input_index), expected, actual))


def _check_undefined_tangents(
    check: _Check, input_index: int, item: Tensor, direction: Tensor, tangents: list[Tensor]
) -> None:
    """Inputs without a tangent must count as inputs with a zero tangent."""
    with_zeros = _tangents(check, item, direction, zeros_for_others=True)
    for index, (left, right) in enumerate(zip(tangents, with_zeros, strict=True)):
        if not _close(left, right, check.rtol, check.atol):
            raise GradcheckError(
                f"Forward mode treats a missing tangent unlike a zero one: along input {input_index}, differentiable"
                f" output {index} differs by up to {_largest(left - right)}"
            )


class _CallableModule(ModuleType):
    """`autograd.gradcheck` is the function and this module at once, whichever was asked for first."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule


# ----- older names ---------------------------------------------------------------------------------------------------


def _jacobians(fn: Callable[..., Any], inputs: Any, item: Tensor, eps: float) -> tuple[Tensor, ...]:
    """For each output its derivatives by one input, a row for each element of that."""
    units = [unit.reshape(-1) for unit in _unit_vectors(item)]
    rows: list[list[Tensor]] = []
    for unit in units:
        step = unit.reshape(item.shape) * eps
        with flambeau.no_grad():
            with _moved(item, step):
                above = [each.detach().clone() for each in _as_tuple(fn(inputs))]
            with _moved(item, -step):
                below = [each.detach().clone() for each in _as_tuple(fn(inputs))]
        rows.append([((high - low) / (2 * eps)).reshape(-1) for high, low in zip(above, below, strict=True)])
    return tuple(flambeau.stack(list(each)) for each in zip(*rows, strict=True))


def _warn_of_older(name: str) -> None:
    import warnings

    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch.",
        FutureWarning,
        stacklevel=3,
    )


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> list[Tensor]:
    """The derivatives of the first output of `fn(inputs)` by each input in `target`, by differences."""
    _warn_of_older("get_numerical_jacobian")
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out")
    chosen = [each for each in _as_tuple(inputs if target is None else target) if _is_variable(each)]
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
    variables = [each for each in _as_tuple(inputs) if _is_variable(each)]

    def once() -> list[list[OptionalTensors]]:
        return [
            [flambeau.autograd.grad(output, variables, unit, retain_graph=True, allow_unused=True)]
            for unit in _unit_vectors(output)
        ]

    first, second = once(), once()

    def columns(passes: list[list[OptionalTensors]], at: int) -> Tensor:
        item = variables[at]
        zeros = flambeau.zeros_like(item).reshape(-1)
        return flambeau.stack([zeros if row[0][at] is None else _flat(row[0][at]) for row in passes], 1)

    jacobians = tuple(columns(first, at) for at in range(len(variables)))
    repeated = tuple(columns(second, at) for at in range(len(variables)))
    apart = max(
        (float((a - b).abs().max()) for a, b in zip(jacobians, repeated, strict=True) if a.numel()), default=0.0
    )
    found = [(item, grad) for row in first for item, grad in zip(variables, row[0], strict=True) if grad is not None]
    sizes = all(item.shape == grad.shape for item, grad in found)
    types = all(item.dtype is grad.dtype for item, grad in found)
    return jacobians, apart <= nondet_tol, sizes, types


def _flat(tensor: Any) -> Tensor:
    flat: Tensor = tensor.reshape(-1)
    return flat
