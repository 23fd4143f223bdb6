"""`gradcheck` and `gradgradcheck`: they accept right derivatives and catch every kind of wrong one."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from flambeau.autograd import Function, gradcheck, gradgradcheck
from tests.support.differential import differential, outcome

# The function hides the module of the same name, as in PyTorch.
GradcheckError = sys.modules["flambeau.autograd.gradcheck"].GradcheckError

BOTH_MODES = pytest.mark.parametrize("fast_mode", [False, True])


def real(*values: float, **options: Any) -> Any:
    return flambeau.tensor(list(values), dtype=flambeau.float64, requires_grad=True, **options)


def complex_(*values: complex) -> Any:
    return flambeau.tensor(list(values), dtype=flambeau.complex128, requires_grad=True)


def custom(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    materialize: bool = True,
) -> Callable[..., Any]:
    """A custom function of the tensors it saves; `backward` and `jvp` get those and the gradients or tangents."""

    class Custom(Function):
        @staticmethod
        def forward(ctx: Any, *items: Any) -> Any:
            ctx.save_for_backward(*items)
            ctx.save_for_forward(*items)
            ctx.set_materialize_grads(materialize)
            return forward(*items)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx.saved_tensors, *gradients)

    if jvp is not None:
        Custom.jvp = staticmethod(lambda ctx, *tangents: jvp(ctx.saved_tensors, *tangents))
    return Custom.apply


CHECKED_FUNCTIONS = {
    "power": lambda T, x: x**3,
    "two outputs": lambda T, x: (x.exp(), (x * x).sum()),
    "view": lambda T, x: x.view(2, 1),
    "half of a graph": lambda T, x: (x * 2, T.ones(2, dtype=T.float64)),
    "no graph": lambda T, x: T.ones(2, dtype=T.float64),
    "detached": lambda T, x: x.detach() * 2,
    "partly detached": lambda T, x: x.detach() * x,
}


@BOTH_MODES
@pytest.mark.parametrize("name", CHECKED_FUNCTIONS)
@differential
def test_verdicts(T: Any, name: str, fast_mode: bool) -> Any:
    x = T.tensor([0.5, 2.0], dtype=T.float64, requires_grad=True)
    options = {"fast_mode": fast_mode, "raise_exception": False}
    return T.autograd.gradcheck(lambda x: CHECKED_FUNCTIONS[name](T, x), (x,), **options)


COMPLEX_FUNCTIONS = {
    "square": lambda T, z: z * z,
    "absolute": lambda T, z: z.abs(),
    "conjugate": lambda T, z: z.conj() * (2 + 1j),
    "real part": lambda T, z: z.real * 3,
    "imaginary part": lambda T, z: z.imag,
    "mixed": lambda T, z: z * z.conj() + z,
}


@BOTH_MODES
@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
@differential
def test_complex_verdicts(T: Any, name: str, fast_mode: bool) -> Any:
    z = T.tensor([1 + 2j, 2 - 1j], dtype=T.complex128, requires_grad=True)
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    func = COMPLEX_FUNCTIONS[name]
    return [
        T.autograd.gradcheck(lambda z: func(T, z), (z,), fast_mode=fast_mode),
        T.autograd.gradcheck(lambda x: func(T, x * (1 + 2j)), (x,), fast_mode=fast_mode),
    ]


@BOTH_MODES
def test_wrong_value(fast_mode: bool) -> None:
    wrong = custom(lambda a: a**2, lambda saved, g: g * 3 * saved[0])
    x, y = real(1, 2), real(3, 4)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0,") as caught:
        gradcheck(wrong, (x,), fast_mode=fast_mode)
    text = str(caught.value)
    assert "numerical:" in text
    assert "analytical:" in text
    assert ("max per-element difference (slow mode) is: 2.0" if fast_mode else "largest difference is 2.0") in (
        text.replace("1.99999999", "2.0")
    )
    with pytest.raises(GradcheckError, match="output 1 with respect to input 1,"):
        gradcheck(lambda a, b: (a * b, wrong(b)), (x, y), fast_mode=fast_mode)
    assert gradcheck(wrong, (x,), fast_mode=fast_mode, raise_exception=False) is False


@BOTH_MODES
def test_missing_gradient(fast_mode: bool) -> None:
    assert not gradcheck(
        custom(lambda a: a * 2, lambda saved, g: None), (real(1, 2),), fast_mode=fast_mode, raise_exception=False
    )


@BOTH_MODES
def test_complex_conjugate_mistakes(fast_mode: bool) -> None:
    z = complex_(1 + 2j, 2 - 1j)
    right = custom(lambda a: a**2, lambda saved, g: g * 2 * saved[0].conj())
    assert gradcheck(right, (z,), fast_mode=fast_mode)
    wrong = custom(lambda a: a**2, lambda saved, g: g * 2 * saved[0])
    with pytest.raises(GradcheckError, match=r"While considering the real part of complex outputs only, Jacobian"):
        gradcheck(wrong, (z,), fast_mode=fast_mode)
    # The right real part of a gradient is not enough: the imaginary part of the output has one of its own.
    half = custom(lambda a: a * (1 + 2j), lambda saved, g: (g * (1 + 2j)).real)
    with pytest.raises(GradcheckError, match=r"While considering the imaginary part of complex outputs only"):
        gradcheck(half, (real(1, 2),), fast_mode=fast_mode)


@BOTH_MODES
def test_nondeterminism(fast_mode: bool) -> None:
    calls = iter(range(1000))
    shaky = custom(lambda a: a * 2, lambda saved, g: g * (2 + 1e-9 * next(calls)))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(shaky, (real(1, 2),), fast_mode=fast_mode)
    assert gradcheck(shaky, (real(1, 2),), fast_mode=fast_mode, nondet_tol=1e-5)


@BOTH_MODES
def test_gradient_that_ignores_its_grad_output(fast_mode: bool) -> None:
    # The Jacobian of a one-element sum cannot show it: the only grad_output that it tries is 1.
    stubborn = custom(lambda a: a.sum(), lambda saved, g: flambeau.ones_like(saved[0]))
    options = {"fast_mode": fast_mode, "check_undefined_grad": False}
    if not fast_mode:
        with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
            gradcheck(stubborn, (real(1, 2),), **options)
    assert not gradcheck(stubborn, (real(1, 2),), raise_exception=False, **options)


@BOTH_MODES
def test_undefined_gradients(fast_mode: bool) -> None:
    x = real(1, 2)
    careless = custom(lambda a: a * 2, lambda saved, g: g * 2, materialize=False)
    with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
        gradcheck(careless, (x,), fast_mode=fast_mode)
    assert gradcheck(careless, (x,), fast_mode=fast_mode, check_undefined_grad=False)
    inventive = custom(
        lambda a: a * 2,
        lambda saved, g: flambeau.ones_like(saved[0]) if g is None else g * 2,
        materialize=False,
    )
    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(inventive, (x,), fast_mode=fast_mode)
    careful = custom(lambda a: a * 2, lambda saved, g: None if g is None else g * 2, materialize=False)
    assert gradcheck(careful, (x,), fast_mode=fast_mode)


def test_one_undefined_gradient_of_two() -> None:
    def backward(saved: Any, g: Any, h: Any) -> Any:
        if g is None:
            return None if h is None else h * 3 if h.any() else flambeau.ones_like(saved[0])
        return g * 2 if h is None else g * 2 + h * 3

    inventive = custom(lambda a: (a * 2, a * 3), backward, materialize=False)
    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(inventive, (real(1, 2),))
    assert gradcheck(inventive, (real(1, 2),), check_undefined_grad=False)


def test_outputs_that_are_not_differentiable_are_passed_over() -> None:
    assert gradcheck(lambda a: (a * 2, a > 1), (real(0.5, 2),))
    with pytest.raises(GradcheckError, match="output 2 with respect to input 0"):
        gradcheck(lambda a: (a * 2, a > 1, a.detach() * a), (real(0.5, 2),))


@BOTH_MODES
def test_forward_mode(fast_mode: bool) -> None:
    x = real(1, 2)
    options = {"fast_mode": fast_mode, "check_forward_ad": True}
    assert gradcheck(lambda a: a.exp() * a, (x,), **options)
    assert gradcheck(lambda z: z * z, (complex_(1 + 2j),), **options)
    right = custom(lambda a: a**2, lambda saved, g: g * 2 * saved[0], lambda saved, t: t * 2 * saved[0])
    assert gradcheck(right, (x,), **options)
    wrong = custom(lambda a: a**2, lambda saved, g: g * 2 * saved[0], lambda saved, t: t * 3 * saved[0])
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect"):
        gradcheck(wrong, (x,), **options)
    assert gradcheck(wrong, (x,), fast_mode=fast_mode)
    backward_is_wrong = custom(lambda a: a**2, lambda saved, g: g, lambda saved, t: t * 2 * saved[0])
    assert gradcheck(backward_is_wrong, (x,), check_backward_ad=False, **options)


def test_zero_tangent_unlike_a_missing_one() -> None:
    def jvp(saved: Any, t: Any, u: Any) -> Any:
        a, b = saved
        if t is None or u is None:
            return a * u if t is None else b * t
        return b * t + a * u + 1

    def backward(saved: Any, g: Any) -> Any:
        return (None, None) if g is None else (g * saved[1], g * saved[0])

    product = custom(lambda a, b: a * b, backward, jvp, materialize=False)
    inputs = real(1, 2), real(3, 4)
    with pytest.raises(GradcheckError, match="missing tangent unlike a zero one"):
        gradcheck(product, inputs, check_forward_ad=True)
    assert gradcheck(product, inputs, check_forward_ad=True, check_undefined_grad=False)


def test_wrong_dtype() -> None:
    x = real(1, 2)
    narrow = custom(lambda a: a * 2, lambda saved, g: g * 2, lambda saved, t: (t * 2).float())
    assert gradcheck(narrow, (x,), check_forward_ad=True)
    with pytest.raises(GradcheckError, match=r"derivative of output 0 has incorrect dtype: torch.float32"):
        gradcheck(narrow, (x,), check_forward_ad=True, check_grad_dtypes=True)


def test_wrong_dtype_of_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine casts what a node returns, so that only a fault in the engine itself gives a wrong dtype."""
    grad = flambeau.autograd.grad
    monkeypatch.setattr(
        "flambeau.autograd._gradcheck.backward.grad",
        lambda *a, **k: tuple(g if g is None else g.float() for g in grad(*a, **k)),
    )
    with pytest.raises(GradcheckError, match=r"gradient of input 0 has incorrect dtype: torch.float32"):
        gradcheck(lambda a: a * 2, (real(1, 2),), check_grad_dtypes=True)
    assert gradcheck(lambda a: a * 2, (real(1, 2),))


@BOTH_MODES
def test_batched_gradients(fast_mode: bool) -> None:
    assert gradcheck(lambda a: (a.exp(), a.sum()), (real(1, 2),), check_batched_grad=True, fast_mode=fast_mode)


def test_batched_gradients_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    grad = flambeau.autograd.grad

    def wrong_when_batched(*args: Any, **options: Any) -> Any:
        factor = 2 if options.get("is_grads_batched") else 1
        return tuple(None if g is None else g * factor for g in grad(*args, **options))

    monkeypatch.setattr("flambeau.autograd._gradcheck.backward.grad", wrong_when_batched)
    with pytest.raises(GradcheckError, match=r"Batched gradients differ .* for output 0 and input 0"):
        gradcheck(lambda a: a.exp(), (real(1, 2),), check_batched_grad=True)


@BOTH_MODES
def test_second_order(fast_mode: bool) -> None:
    x, z = real(1, 2), complex_(1 + 2j)
    assert gradgradcheck(lambda a: (a.exp(), a**3, a > 1), (x,), fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a**3, (z,), fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a * 2, (x,), fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a.exp(), (x,), flambeau.ones(2, dtype=flambeau.float64), fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a.exp(), (x,), gen_non_contig_grad_outputs=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a.exp(), (x,), check_fwd_over_rev=True, fast_mode=fast_mode)
    frozen = custom(lambda a: a**3, lambda saved, g: g * 3 * saved[0].detach() ** 2)
    assert gradcheck(frozen, (x,), fast_mode=fast_mode)
    assert not gradgradcheck(frozen, (x,), fast_mode=fast_mode, raise_exception=False)

    class Once(Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a**3

        @staticmethod
        @flambeau.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3 * ctx.saved_tensors[0] ** 2

    assert not gradgradcheck(Once.apply, (x,), fast_mode=fast_mode, raise_exception=False)


def test_inputs_are_left_as_they_were() -> None:
    x = real(1, 2)
    version = x._version
    assert gradcheck(lambda a: a * a, (x,))
    assert x.tolist() == [1, 2]
    assert x._version == version
    assert x.grad is None

    def fails_when_moved(a: Any) -> Any:
        if a[0] != 1:
            raise ZeroDivisionError
        return a * 2

    with pytest.raises(ZeroDivisionError):
        gradcheck(fails_when_moved, (x,), raise_exception=False)
    assert x.tolist() == [1, 2]


def test_kinds_of_inputs() -> None:
    x = real(1, 2)
    assert gradcheck(lambda a: a * 2, x)
    assert gradcheck(lambda a: a * 2, [x])
    assert gradcheck(lambda a, n, b: a * n + b, (x, 3, flambeau.ones(2, dtype=flambeau.float64)))
    assert gradcheck(lambda a: a * 2, (x * 3,))
    assert gradcheck(lambda a: a.exp(), (real(),))
    assert gradcheck(lambda a, b: a * 2, (x, real(3)))
    transposed = flambeau.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=flambeau.float64).t().requires_grad_()
    assert gradcheck(lambda a: a * a, (transposed,))


def test_bad_arguments() -> None:
    x = real(1, 2)
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(lambda a: a * 2, (x.detach(),))
    with pytest.raises(ValueError, match="output 0 is 3"):
        gradcheck(lambda a: 3, (x,))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda a: a * 2, (real(1).detach().expand(3).requires_grad_(),))
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad"):
        gradcheck(lambda a: a * 2, (x,), check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_batched_grad=True requires check_backward_ad"):
        gradcheck(lambda a: a, (x,), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(AssertionError, match="check_batched_forward_grad=True requires check_forward_ad"):
        gradcheck(lambda a: a * 2, (x,), check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="at least one of check_fwd_over_rev or check_rev_over_rev"):
        gradgradcheck(lambda a: a * 2, (x,), check_rev_over_rev=False)
    with pytest.raises(TypeError, match="positional"):
        gradcheck(lambda a: a * 2, (x,), 1e-6)


def test_single_precision_warns() -> None:
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        gradcheck(lambda a: a * 2, (x,), raise_exception=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradcheck(lambda a: a * 2, (real(1, 2),))


def test_tolerances() -> None:
    rough = custom(lambda a: a * 2, lambda saved, g: g * 2.01)
    x = real(1, 2)
    assert not gradcheck(rough, (x,), raise_exception=False)
    assert gradcheck(rough, (x,), atol=0.1)
    assert gradcheck(rough, (x,), rtol=0.1)
    kink = real(1e-4)
    assert gradcheck(lambda a: a.abs(), (kink,))
    assert not gradcheck(lambda a: a.abs(), (kink,), eps=1e-2, raise_exception=False)


def test_the_module_is_the_function_too() -> None:
    """Whoever imports the module first must still be able to call `autograd.gradcheck`."""
    program = (
        "import flambeau.autograd.gradcheck, flambeau as torch;"
        "x = torch.ones(2, dtype=torch.float64, requires_grad=True);"
        "assert torch.autograd.gradcheck(lambda a: a * a, (x,))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@BOTH_MODES
@differential
def test_layouts(T: Any, fast_mode: bool) -> Any:
    """Sparse and MKL-DNN inputs; outputs of these layouts are refused."""
    coo = T.eye(3, dtype=T.float64).to_sparse().requires_grad_()
    csr = T.eye(3, dtype=T.float64).to_sparse_csr().requires_grad_()
    dense = T.arange(6.0, dtype=T.float64).reshape(3, 2).requires_grad_()
    blocked = T.ones(2, 2).to_mkldnn().requires_grad_()
    cases: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (lambda x: x.to_dense(masked_grad=True), (coo,), {"masked": True}),
        (lambda x: x.to_dense(masked_grad=False), (coo,), {"masked": False}),
        (lambda x: x.to_dense(masked_grad=True), (csr,), {"masked": True}),
        (lambda x: x.to_dense(masked_grad=False), (csr,), {"masked": False}),
        (T.sparse.mm, (coo, dense), {"masked": True}),
        (lambda x: x.to_dense(), (blocked,), {"atol": 0.1}),
        (lambda x: x.to_sparse(), (dense,), {}),
        (lambda x: x.to_mkldnn(), (dense.detach().float().requires_grad_(),), {"atol": 0.1}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single precision
        return [
            outcome(lambda case=case: T.autograd.gradcheck(case[0], case[1], fast_mode=fast_mode, **case[2]))
            for case in cases
        ]


@BOTH_MODES
@differential
def test_batched_forward_gradients(T: Any, fast_mode: bool) -> Any:
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    options = {"check_forward_ad": True, "check_batched_forward_grad": True, "fast_mode": fast_mode}
    return (
        T.autograd.gradcheck(lambda x: (x * x, x.exp()), (x,), **options),
        T.autograd.gradcheck(lambda x: (x * 2, x.argmax(), x.detach()), (x,), fast_mode=fast_mode),
    )


@differential
def test_the_backward_pass_is_checked_first(T: Any) -> Any:
    class Wrong(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    x = T.ones(2, dtype=T.float64, requires_grad=True)
    return outcome(lambda: T.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True), "Jacobian mismatch")


def test_functions_that_differentiate_inside() -> None:
    x = flambeau.tensor([0.5, -1.2], dtype=flambeau.float64, requires_grad=True)

    def slope(at: flambeau.Tensor) -> flambeau.Tensor:
        recorded = at.sin()
        return flambeau.autograd.grad(recorded, at, flambeau.ones(2, dtype=flambeau.float64), create_graph=True)[0]

    for fast_mode in (False, True):
        assert gradcheck(slope, x, fast_mode=fast_mode)
