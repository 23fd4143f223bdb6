"""`gradcheck` and `gradgradcheck`: derivatives by autograd against derivatives by finite differences."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import Any

from flambeau._core.dtype import complex128, float64
from flambeau._core.tensor import Tensor
from flambeau._ops.random.draws import randn
from flambeau._ops.shape.join import stack
from flambeau.autograd import grad
from flambeau.autograd._gradcheck.backward import check_backward
from flambeau.autograd._gradcheck.check import Check, Func, GradcheckError, as_tuple, is_differentiable, is_variable
from flambeau.autograd._gradcheck.forward import check_forward
from flambeau.autograd._gradcheck.layouts import in_strided_inputs
from flambeau.autograd._gradcheck.older import (
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)
from flambeau.autograd.grad_mode import enable_grad

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]

GradcheckError.__module__ = __name__  # where PyTorch's is


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
    each Jacobian instead of all its elements. With `masked`, elements that a sparse input does not store are constants.
    A wrong derivative raises `GradcheckError`, or gives False with `raise_exception=False`.

    >>> import flambeau
    >>> x = flambeau.tensor([0.5, 2.], dtype=float64, requires_grad=True)
    >>> flambeau.autograd.gradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    switches = (check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad)
    check = Check(*in_strided_inputs(func, as_tuple(inputs), bool(masked)), eps, atol, rtol, nondet_tol, *switches)
    try:
        _check_inputs(check)
        if check_backward_ad:
            check_backward(check, fast_mode)
        if check_forward_ad:
            check_forward(check, fast_mode)
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
    >>> x = flambeau.tensor([0.5, 2.], dtype=float64, requires_grad=True)
    >>> flambeau.autograd.gradgradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = as_tuple(inputs)
    if grad_outputs is None:
        outputs = [item for item in as_tuple(func(*arguments)) if is_differentiable(item)]
        cotangents = tuple(_random_grad_output(item, gen_non_contig_grad_outputs) for item in outputs)
    else:
        cotangents = as_tuple(grad_outputs)
    count = len(cotangents)

    def gradient(*items: Any) -> tuple[Tensor, ...]:
        function_inputs, vectors = (items[:-count], items[-count:]) if count else (items, ())
        variables = [item for item in function_inputs if is_variable(item)]
        with enable_grad():
            results = [item for item in as_tuple(func(*function_inputs)) if is_differentiable(item)]
            found = grad(results, variables, vectors, create_graph=True, allow_unused=True)
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


def _random_grad_output(output: Tensor, non_contiguous: bool) -> Tensor:
    vector = randn(output.shape, dtype=output.dtype, device=output.device)
    if non_contiguous and vector.ndim:
        vector = stack([vector, vector], dim=-1)[..., 0]
    return vector.detach().requires_grad_()


def _check_inputs(check: Check) -> None:
    if not check.variables:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for index, item in check.variables:
        if item.dtype not in (float64, complex128):
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


class _CallableModule(ModuleType):
    """`autograd.gradcheck` is the function and this module at once, whichever was asked for first."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
