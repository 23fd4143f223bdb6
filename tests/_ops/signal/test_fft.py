"""Fourier transforms, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.differential import differential, outcome, warned
from ...support.oracle import HAS_MKL

OF_ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
OF_MANY = [f"{name}{suffix}" for suffix in "2n" for name in OF_ONE]
REAL_INPUT = ("rfft", "ihfft")
NORMS = [None, "backward", "ortho", "forward"]


def signal(T: Any, name: str, dtype: str = "float64", shape: tuple[int, ...] = (3, 4, 5)) -> Any:
    """Input that the transform takes: complex if it may be."""
    x = (T.arange(60.0, dtype=T.float64) * 0.7).sin()[: shape[0] * shape[1] * shape[2]].reshape(shape)
    if not name.startswith(REAL_INPUT):
        x = T.complex(x, x.flip(0).cos())
        return x.to(getattr(T, {"float32": "complex64", "float64": "complex128"}[dtype]))
    return x.to(getattr(T, dtype))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", OF_ONE)
@differential
def test_one_dimension(T: Any, name: str, norm: str | None) -> Any:
    x, f = signal(T, name), getattr(T.fft, name)
    return [f(x, n, dim, norm) for n, dim in ((None, -1), (None, 0), (7, 1), (8, -1), (3, 0), (2, -1))]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", OF_MANY)
@differential
def test_several_dimensions(T: Any, name: str, norm: str | None) -> Any:
    x, f = signal(T, name), getattr(T.fft, name)
    arguments: Any = [{}, {"s": (2, 7)}, {"dim": (0, 2)}, {"s": (6, -1), "dim": (2, 0)}, {"dim": 1}]
    if name.endswith("2"):
        arguments[1]["dim"] = (0, 1)
    return [f(x, norm=norm, **each) for each in arguments]


@pytest.mark.parametrize("name", [*OF_ONE, *OF_MANY])
@differential(tolerance=1e-5)
def test_dtypes_and_layouts(T: Any, name: str) -> Any:
    f = getattr(T.fft, name)
    x = signal(T, name, "float32")
    whole, flags = T.arange(12).reshape(3, 4), T.arange(12).reshape(3, 4) > 5
    results = [f(x), f(x.permute(2, 0, 1)), f(x[:, ::2]), f(x.real if x.is_complex() else x), f(whole), f(flags)]
    if "n" not in name and not HAS_MKL:  # which refuses to transform nothing
        results.append(f(T.zeros(0, 4, 4)))
    unreal = f(T.ones(3, 4, device="meta"))
    return (
        results,
        (unreal.shape, unreal.dtype, unreal.device),
        outcome(lambda: f(T.ones(4, 4, dtype=T.float16)), "Unsupported dtype Half"),
        outcome(lambda: f(T.ones(4, 4, dtype=T.bfloat16)), "Unsupported dtype BFloat16"),
    )


def packed(tensors: Any) -> Any:
    """Gradients that are added up from several: the layout of the sum is that of PyTorch's first one, with MKL."""
    return [each.detach().contiguous() for each in tensors] if HAS_MKL else tensors


@pytest.mark.parametrize("name", [*OF_ONE, *OF_MANY])
@differential
def test_derivatives(T: Any, name: str) -> Any:
    x = signal(T, name, shape=(2, 3, 4)).requires_grad_()
    f = getattr(T.fft, name)
    arguments: Any = {"s": (5, 3), "dim": (0, 1)} if name in OF_MANY else {"n": 5, "dim": 1}
    results = f(x), f(x, norm="ortho"), f(x, **arguments)
    total = sum((each.abs() ** 3).sum() for each in results)
    (grad,) = T.autograd.grad(total, x, create_graph=True)
    return results, packed([grad.detach()]), packed(T.autograd.grad((grad.abs() ** 2).sum(), x))


@differential
def test_real_input_of_complex_transforms(T: Any) -> Any:
    x = signal(T, "rfft").requires_grad_()
    results = [f(x) for f in (T.fft.fft, T.fft.ifft, T.fft.irfft, T.fft.hfft, T.fft.fftn, T.fft.irfftn, T.fft.hfft2)]
    return results, packed(T.autograd.grad(sum((each.abs() ** 2).sum() for each in results), x))


@pytest.mark.parametrize("name", OF_ONE)
@differential
def test_gradients_exactly(T: Any, name: str) -> Any:
    x = signal(T, name, shape=(2, 3, 4))[0].requires_grad_()
    f = getattr(T.fft, name)
    return (
        T.autograd.gradcheck(f, x),
        T.autograd.gradgradcheck(f, x),
        T.autograd.gradcheck(getattr(T.fft, f"{name}n"), x),
    )


@pytest.mark.parametrize("name", ["fft", "ihfft", "irfftn"])
@differential(tolerance=1e-5)
def test_out(T: Any, name: str) -> Any:
    x = signal(T, name, "float32")
    f = getattr(T.fft, name)
    plain = f(x)
    wide = T.complex128 if plain.is_complex() else T.float64
    other = T.float32 if plain.is_complex() else T.complex64
    given = T.empty_like(plain).mT.contiguous().mT
    return (
        f(x, out=given) is given,
        given,
        f(x, out=T.empty(0, dtype=plain.dtype)),
        outcome(lambda: f(x, out=T.empty(0, dtype=wide)).to(plain.dtype)),
        outcome(lambda: f(x, out=T.empty(0, dtype=other)), "output tensor, but got"),
        warned(lambda: f(x, out=T.empty(2, dtype=plain.dtype)), "was resized"),
    )


@differential
def test_frequencies(T: Any) -> Any:
    f, r = T.fft.fftfreq, T.fft.rfftfreq
    return (
        [[f(n, 0.5), r(n, d=0.1)] for n in (0, 1, 2, 5, 6)],
        [f(7, dtype=each) for each in (T.float16, T.bfloat16, T.float64)],
        f(4, 0),
        r(4, device="meta"),
        f(4, out=T.empty(0, dtype=T.float64)),
        f(n=3, requires_grad=True),
        outcome(lambda: f(4, dtype=T.int64), "requires a floating point or complex dtype"),
        outcome(lambda: f(4, dtype=T.complex64), "not implemented for 'ComplexFloat'"),
        outcome(lambda: f(4, out=T.empty(0), dtype=T.float64), "does not match dtype of out parameter"),
        outcome(lambda: f(-1), "negative dimension"),
        outcome(lambda: f(2.5), "must be int, not float"),
        outcome(lambda: f(4, 1j), "must be float, not complex"),
    )


@differential
def test_shifts(T: Any) -> Any:
    x = T.arange(20.0).reshape(4, 5).requires_grad_()
    f, g = T.fft.fftshift, T.fft.ifftshift
    weighed = (f(x) * x).sum()
    return (
        [[each(x), each(x, 0), each(x, dim=(1,)), each(x, (0, 0)), each(x.long() > 3)] for each in (f, g)],
        T.autograd.grad(weighed, x),
        outcome(lambda: f(x, 2), "Dimension out of range"),
        outcome(lambda: f(x[0, 0]), "`shifts` required"),
    )


@pytest.mark.parametrize("name", OF_ONE)
@differential
def test_errors_of_one_dimension(T: Any, name: str) -> Any:
    x, f = signal(T, name), getattr(T.fft, name)
    return (
        outcome(lambda: f(x, 0), "Invalid number of data points (0) specified"),
        outcome(lambda: f(x[..., :0]), "Invalid number of data points"),
        outcome(lambda: f(x, dim=3), "Dimension out of range"),
        outcome(lambda: f(x[0, 0, 0]), "Dimension specified as -1 but tensor has no dimensions"),
        outcome(lambda: f(x, norm="other"), 'Invalid normalization mode: "other"'),
        outcome(lambda: f(x, norm=3), "must be str, not int"),
        outcome(lambda: f(x, 2.5), "must be int, not float"),
        outcome(lambda: f([1.0]), "must be Tensor, not list"),
    )


@pytest.mark.parametrize("name", OF_MANY)
@differential
def test_errors_of_several_dimensions(T: Any, name: str) -> Any:
    x, f = signal(T, name), getattr(T.fft, name)
    return (
        outcome(lambda: f(x, (0, 3), (0, 1)), "Invalid number of data points (0) specified"),
        outcome(lambda: f(x, (1, 2), (0,)), "dim and shape arguments must have the same length"),
        outcome(lambda: f(x, (1, 2, 3, 4)), "same length", "Got shape with 4 values"),
        outcome(lambda: f(x, dim=(1, -2)), "FFT dims must be unique"),
        outcome(lambda: f(x, dim=(0, 3)), "Dimension out of range"),
        outcome(lambda: f(x, dim=())),
        outcome(lambda: f(x[0, 0, 0], dim=(0,)), "Dimension specified as 0 but tensor has no dimensions"),
        outcome(lambda: f(x, s=(1.5,))),
        outcome(lambda: f(x, norm="other"), "Invalid normalization mode"),
    )


@pytest.mark.parametrize("name", ["rfft", "ihfft", "rfft2", "rfftn", "ihfft2", "ihfftn"])
@differential
def test_complex_input_of_real_transforms(T: Any, name: str) -> Any:
    x = signal(T, "fft")
    return outcome(lambda: getattr(T.fft, name)(x), "but got ComplexDouble", "but found: ComplexDouble")


@pytest.mark.parametrize("points", [99, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@differential(tolerance=1e-4)
def test_many_lines(T: Any, dtype: str, points: int) -> Any:
    x = (T.arange(50 * points) * 7919 % 1009 / 1009).reshape(50, points).to(getattr(T, dtype))
    return [T.fft.fft(x, dim=dim, norm=norm) for dim in (0, 1) for norm in (None, "ortho", "forward")]
