"""Window functions, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.differential import differential, outcome

WINDOWS = ["hann_window", "hamming_window", "bartlett_window", "blackman_window", "kaiser_window"]
OF_SIGNAL: list[tuple[str, dict[str, Any]]] = [
    ("bartlett", {}),
    ("blackman", {}),
    ("cosine", {}),
    ("exponential", {"tau": 2.5}),
    ("gaussian", {"std": 1.5}),
    ("general_cosine", {"a": [0.46, 0.23, 0.31]}),
    ("general_hamming", {"alpha": 0.7}),
    ("hamming", {}),
    ("hann", {}),
    ("kaiser", {"beta": 4.5}),
    ("nuttall", {}),
]


@pytest.mark.parametrize("name", WINDOWS)
@differential
def test_windows(T: Any, name: str) -> Any:
    f = getattr(T, name)
    return (
        [f(length, periodic) for length in (0, 1, 2, 5, 8) for periodic in (True, False)],
        f(9, dtype=T.float64),
        f(1, dtype=T.complex64),
        f(window_length=5, periodic=False, device="meta"),
        f(5, requires_grad=True),
        outcome(lambda: f(-1), "requires non-negative window_length"),
        outcome(lambda: f(5, dtype=T.int64), "expects floating point dtypes"),
        outcome(lambda: f(5, dtype=T.complex64), "not implemented for 'ComplexFloat'"),
        outcome(lambda: f(2.5), "must be int, not float"),
        outcome(lambda: f(True), "must be int, not bool"),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", WINDOWS)
@differential(tolerance=0.0)
def test_half_precision_is_rounded_as_in_pytorch(T: Any, name: str, dtype: str) -> Any:
    return [getattr(T, name)(length, dtype=getattr(T, dtype)) for length in (7, 16)]


@differential
def test_further_numbers(T: Any) -> Any:
    return (
        T.hamming_window(6, True, 0.6),
        T.hamming_window(6, False, alpha=0.6, beta=0.4),
        T.kaiser_window(6, True, 5.0),
        T.kaiser_window(6, periodic=False, beta=0.0),
        outcome(lambda: T.hamming_window(6, alpha=0.6), "invalid combination of arguments"),
        outcome(lambda: T.kaiser_window(6, beta=3.0), "invalid combination of arguments"),
    )


@pytest.mark.parametrize(("name", "options"), OF_SIGNAL)
@differential
def test_windows_of_signal(T: Any, name: str, options: dict[str, Any]) -> Any:
    f = getattr(T.signal.windows, name)
    return (
        [f(length, sym=sym, **options) for length in (0, 1, 2, 5, 8) for sym in (True, False)],
        f(7, dtype=T.float64, **options),
        f(7, device="meta", **options),
        outcome(lambda: f(-1, **options), "requires non-negative window length, got M=-1"),
        outcome(lambda: f(5, dtype=T.float16, **options), "expects float32 or float64 dtypes"),
        outcome(lambda: f(5, layout=None, **options), "implemented for strided tensors only"),
        outcome(lambda: f(2.5, **options)),
        outcome(lambda: f(5, True, **options), "takes 1 positional argument but 2"),
    )


@differential
def test_windows_of_signal_in_a_graph(T: Any) -> Any:
    w = T.signal.windows
    return [f(5, requires_grad=True) for f in (w.bartlett, w.cosine, w.exponential, w.gaussian, w.hann)]


@differential
def test_errors_of_signal(T: Any) -> Any:
    w = T.signal.windows
    return (
        w.exponential(6, center=1.5, sym=False),
        outcome(lambda: w.exponential(6, center=1.5), "Center must be None for symmetric windows"),
        outcome(lambda: w.exponential(6, tau=0), "Tau must be positive"),
        outcome(lambda: w.gaussian(6, std=-1), "Standard deviation must be positive"),
        outcome(lambda: w.kaiser(6, beta=-1), "beta must be non-negative"),
        outcome(lambda: w.general_cosine(6, a=3), "Coefficients must be a list/tuple"),
        outcome(lambda: w.general_cosine(6, a=[]), "Coefficients cannot be empty"),
        outcome(lambda: w.other(6)),
    )
