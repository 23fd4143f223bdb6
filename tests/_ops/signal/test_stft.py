"""The short-time Fourier transform and its inverse, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from flambeau._core.process import caller

from ...support.differential import differential, outcome


def signal(T: Any, *shape: int, dtype: str = "float64") -> Any:
    numbers = (T.arange(120.0, dtype=T.float64) ** 1.5).sin()
    result = numbers[: shape[0] * (shape[1] if len(shape) > 1 else 1)].reshape(shape)
    if dtype.startswith("complex"):
        result = T.complex(result, result.flip(0).cos())
    return result.to(getattr(T, dtype))


def window(T: Any, length: int, dtype: str = "float64") -> Any:
    return (T.arange(1.0, length + 1, dtype=T.float64) / length).sqrt().to(getattr(T, dtype))


CALLS: list[dict[str, Any]] = [
    {},
    {"center": False},
    {"hop_length": 3, "normalized": True},
    {"onesided": False, "pad_mode": "constant"},
    {"win_length": 5, "pad_mode": "replicate"},
    {"return_complex": False, "pad_mode": "circular"},
    {"win_length": 6, "center": False, "align_to_window": True},
    {"win_length": 6, "center": False, "align_to_window": False},
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("call", CALLS, ids=str)
@differential
def test_stft(T: Any, call: dict[str, Any], dtype: str) -> Any:
    options = {"return_complex": True, **call}
    x = signal(T, 20, dtype=dtype).requires_grad_()
    y = signal(T, 2, 30, dtype=dtype)
    weights = window(T, options.get("win_length", 8), "float64" if dtype == "complex128" else dtype).requires_grad_()
    results = [T.stft(x, 8, window=weights, **options), T.stft(x, 8, **options), y.stft(8, window=weights, **options)]
    total = sum((each.abs() ** 2).sum() for each in results)
    return results, T.autograd.grad(total, (x, weights))


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"center": False},
        {"hop_length": 3, "normalized": True},
        {"win_length": 6, "onesided": True},
        {"length": 12},
        {"length": 60, "center": False},
    ],
    ids=str,
)
@differential
def test_istft(T: Any, call: dict[str, Any]) -> Any:
    spectra = signal(T, 5, 12, dtype="complex128").requires_grad_()
    batch = T.stack([signal(T, 5, 8, dtype="complex64"), signal(T, 8, 5, dtype="complex64").T])
    weights = window(T, call.get("win_length", 8)).requires_grad_()
    results = [T.istft(spectra, 8, window=weights, **call), T.istft(spectra, 8, **call), batch.istft(8, **call)]
    return results, T.autograd.grad(sum((each**2).sum() for each in results), (spectra, weights))


@differential
def test_istft_of_whole_spectra(T: Any) -> Any:
    spectra = signal(T, 8, 12, dtype="complex128").requires_grad_()
    results = [
        T.istft(spectra, 8, onesided=False),
        T.istft(spectra, 8, return_complex=True),
        T.istft(spectra, 8, window=signal(T, 8, dtype="complex128"), return_complex=True),
    ]
    return results, T.autograd.grad(sum((each.abs() ** 2).sum() for each in results), spectra)


@differential
def test_inverse(T: Any) -> Any:
    x, weights = signal(T, 100), T.hann_window(16, dtype=T.float64)
    spectra = T.stft(x, 16, 4, window=weights, return_complex=True)
    return T.allclose(T.istft(spectra, 16, 4, window=weights, length=100), x), T.istft(spectra, 16, 4, window=weights)


@differential
def test_dtypes(T: Any) -> Any:
    x = signal(T, 20, dtype="float32")
    return (
        T.stft(x, 8, window=window(T, 8), return_complex=True),
        T.stft(x, 8, window=T.ones(8, dtype=T.int64), return_complex=True),
        T.stft(x, 8, window=window(T, 8).to(T.complex64)),
        T.stft(T.ones(20, device="meta"), 8, return_complex=True),
        outcome(lambda: T.stft(x.long(), 8, return_complex=True), "floating point or complex"),
        outcome(lambda: T.stft(x.half(), 8, return_complex=True)),
    )


@differential
def test_stft_errors(T: Any) -> Any:
    x = signal(T, 20)

    def call(n_fft: Any = 8, input: Any = x, **options: Any) -> Any:
        return T.stft(input, n_fft, **{"return_complex": True, **options})

    return (
        outcome(lambda: T.stft(x, 8), "requires the return_complex parameter be given for real inputs"),
        outcome(lambda: call(input=signal(T, 3, 40).reshape(3, 2, 20)), "expected a 1D or 2D tensor"),
        outcome(lambda: call(0, center=False), "expected 0 < n_fft < 20, but got n_fft=0"),
        outcome(lambda: call(21, center=False), "but got n_fft=21"),
        outcome(lambda: call(50), "Padding size should be less than"),
        outcome(lambda: call(hop_length=0), "expected hop_length > 0, but got hop_length=0"),
        outcome(lambda: call(win_length=9), "expected 0 < win_length <= n_fft, but got win_length=9"),
        outcome(lambda: call(window=T.ones(7)), "expected a 1D window tensor of size equal to win_length=8"),
        outcome(lambda: call(input=x * 1j, onesided=True), "Cannot have onesided output"),
        outcome(lambda: call(pad_mode="other"), "Unrecognised padding mode other"),
        outcome(lambda: call(align_to_window=True), "should only be set when center = false"),
        outcome(lambda: call(window=T.ones(8, device="meta")), "must be on the same device"),
        outcome(lambda: call(8.5)),
        outcome(lambda: call(window="hann")),
    )


@differential
def test_istft_errors(T: Any) -> Any:
    x = signal(T, 5, 12, dtype="complex128")

    def call(n_fft: Any = 8, input: Any = x, **options: Any) -> Any:
        return T.istft(input, n_fft, **options)

    return (
        outcome(lambda: call(input=x.real), "requires a complex-valued input tensor"),
        outcome(lambda: call(input=x[0]), "Dimension out of range"),
        outcome(lambda: call(input=x[None, None]), "expected a tensor with 3 or 4 dimensions, but got 5"),
        outcome(lambda: call(input=x[:, :0]), "input tensor cannot be empty"),
        outcome(lambda: call(7), "match n_fft / 2 + 1 when onesided=True, but got 5"),
        outcome(lambda: call(onesided=False), "match n_fft when onesided=False, but got 5"),
        outcome(lambda: call(hop_length=9), "expected 0 < hop_length <= win_length"),
        outcome(lambda: call(win_length=9), "expected 0 < win_length <= n_fft"),
        outcome(lambda: call(window=T.ones(4)), "window has to be 1D and length of `win_length`"),
        outcome(lambda: call(return_complex=True), "Cannot have onesided output"),
        outcome(lambda: call(window=T.ones(8, dtype=T.complex128)), "Complex windows are incompatible"),
        outcome(lambda: call(window=T.zeros(8, dtype=T.float64)), "window overlap add min"),
        outcome(lambda: call(length=0), "Expected reduction dim to be specified"),
        outcome(lambda: call(window=3), "must be Tensor, not int"),
    )


def test_warnings_are_given_once() -> None:
    caller._given.clear()
    x = flambeau.ones(20)
    with pytest.warns(UserWarning, match="A window was not provided"):
        spectra = flambeau.stft(x, 8, return_complex=True)
    with pytest.warns(UserWarning, match="A window was not provided"):
        flambeau.istft(spectra, 8)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        flambeau.stft(x, 8, return_complex=False)
    with pytest.warns(UserWarning, match="shorter than the length parameter"):
        flambeau.istft(spectra, 8, length=60)
    flambeau.stft(x, 8, return_complex=False)  # warnings are errors here
    flambeau.istft(spectra, 8, length=60)
