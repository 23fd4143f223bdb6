"""What test suites of libraries and of PyTorch found: NaN, NumPy's numbers, wrappers, refusals."""

from __future__ import annotations

import importlib
import weakref
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._dispatch.public.explain import _is_meant
from tests.support.differential import differential, outcome

NAN = float("nan")


@differential
def test_slopes_at_nan(torch: Any) -> Any:
    def slope(function: Any) -> Any:
        x = torch.tensor([NAN, 1.0, 0.0, -1.0], requires_grad=True)
        function(x).sum().backward()
        return x.grad

    F = torch.nn.functional
    return [slope(each) for each in (F.elu, F.celu, F.selu)]


@differential
def test_numbers_of_numpy(torch: Any) -> Any:
    numbers = [np.float32(1.5), np.float64(2), np.int32(3), np.bool_(True), np.complex64(1j)]
    return [torch.asarray(each) for each in numbers], torch.asarray(np.float32(1.5), dtype=torch.int64)


@differential
def test_cholesky_of_nan(torch: Any) -> Any:
    unknown = torch.full((2, 2), NAN)
    batch = torch.stack([torch.eye(2), unknown, torch.tensor([[1.0, 0.0], [0.0, NAN]])])
    return (
        outcome(lambda: torch.linalg.cholesky(unknown), "not positive-definite"),
        outcome(lambda: torch.linalg.cholesky(batch), "Batch element 1"),
        torch.linalg.cholesky_ex(batch).info,
        torch.linalg.cholesky_ex(batch.double(), upper=True).info,
    )


@differential
def test_forward_mode_refuses_out(torch: Any) -> Any:
    forward = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(2), torch.ones(2))
        return (
            outcome(lambda: torch.sin(dual, out=torch.empty(2)), "it is an out= function"),
            outcome(lambda: torch.sin(torch.ones(2), out=dual), "it is an out= function"),
            outcome(lambda: torch.add(dual, 1, out=torch.empty(2)), "it is an out= function"),
            torch.sin(torch.zeros(2), out=torch.empty(2)),
        )


@differential
def test_tensors_that_somebody_refers_to_weakly_stay(torch: Any) -> Any:
    held, free = torch.ones(2), torch.zeros(2)
    reference = weakref.ref(held)
    refused = outcome(lambda: torch.utils.swap_tensors(held, free), "Cannot swap t1 because it has weakref")
    other = outcome(lambda: torch.utils.swap_tensors(free, held), "Cannot swap t2 because it has weakref")
    return refused, other, held, free, reference() is held


def _wrapper_class(torch: Any) -> Any:
    pytree = importlib.import_module(f"{torch.__name__}.utils._pytree")

    class Wrapper(torch.Tensor):  # type: ignore[misc]
        inner: Any
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, strides=inner.stride(), requires_grad=inner.requires_grad
            )
            made.inner = inner.detach()
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            taken = pytree.tree_map(
                lambda each: each.inner if isinstance(each, Wrapper) else each, (args, kwargs or {})
            )
            result = func(*taken[0], **taken[1])
            is_new = lambda each: isinstance(each, torch.Tensor) and not isinstance(each, Wrapper)  # noqa: E731
            return pytree.tree_map(lambda each: Wrapper(each) if is_new(each) else each, result)

    return Wrapper


@differential
def test_wrappers_have_no_memory(torch: Any) -> Any:
    wrapper = _wrapper_class(torch)(torch.ones(2))
    return (
        wrapper.data_ptr(),
        outcome(wrapper.tolist, ".tolist() is not supported for tensor subclasses"),
        torch.ones(2).data_ptr() != 0,
    )


@differential
def test_derivatives_of_functions_of_wrappers(torch: Any) -> Any:
    wrapper = _wrapper_class(torch)
    functional = torch.autograd.functional
    x, v = wrapper(torch.ones(3)), wrapper(torch.ones(3))
    results = [
        functional.vjp(torch.sin, x, v)[1],
        functional.jvp(torch.sin, x, v)[1],
        functional.hvp(lambda x: x.sin().sum(), x, v)[1],
        functional.vhp(lambda x: x.sin().sum(), x, v)[1],
        functional.jacobian(torch.sin, x),
    ]
    wanted = torch.zeros_like(x, requires_grad=True).requires_grad, x.new_zeros(2, requires_grad=True).requires_grad
    return [(type(each).__name__, each.inner) for each in results], wanted


def test_errors_of_signal_handlers_keep_their_type() -> None:
    """A handler may run while NumPy's Python code does; its error is not one of the op's arguments."""
    namespace: dict[str, Any] = {}
    exec(compile("def numpys_own(handler): handler()", np.__file__, "exec"), namespace)
    exec(compile("def function(inner, handler): inner(handler)", flambeau.__file__, "exec"), namespace)

    def handler() -> None:
        raise TimeoutError("too long")

    exec(compile("def fails(): raise ValueError", np.__file__, "exec"), namespace)
    found = []
    for each in (handler, namespace["fails"]):
        with pytest.raises((TimeoutError, ValueError)) as caught:
            namespace["function"](namespace["numpys_own"], each)
        found.append(_is_meant(caught.value))
    assert found == [True, False]


@differential
def test_wrappers_have_no_array_and_saved_tensors_no_constructor(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    saved = type((x * x).grad_fn._raw_saved_self)
    wrapper = _wrapper_class(torch)(torch.ones(3))
    return (
        outcome(wrapper.numpy, ".numpy() is not supported for tensor subclasses"),
        outcome(saved, "Trying to create a SavedTensor object from Python is forbidden"),
    )


@differential
def test_a_backward_that_is_not_repeatable_is_told_before_a_mismatch(torch: Any) -> Any:
    class Random(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * (2 + torch.rand((), dtype=torch.float64))

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    return outcome(lambda: torch.autograd.gradcheck(Random.apply, (x,)), "Backward is not reentrant")
