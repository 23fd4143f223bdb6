"""Generated Fourier transforms beside NumPy's in float64: factors, few rows and many, halves, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.linalg import fourier

POINTS = [1, 2, 3, 4, 5, 6, 8, 15, 16, 25, 27, 60, 125, 243, 1000, 1024]
NAMES = {"float32": np.complex64, "float64": np.complex128}
SCALES: Any = ("backward", "ortho", "forward")
"""What NumPy calls 0, 1 and 2 in a forward transform."""


def signals(rows: int, points: int, dtype: str) -> Any:
    noise = np.random.default_rng(points).standard_normal((2, rows, points))
    return (noise[0] + 1j * noise[1]).astype(NAMES[dtype])


def check(got: Any, exact: Any, dtype: str) -> None:
    assert got.shape == exact.shape
    assert np.abs(got - exact).max() <= 8 * np.finfo(dtype).eps * np.abs(exact).max()


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("rows", [1, 4, 17])
def test_every_form(rows: int, dtype: str) -> None:
    for number, points in enumerate(POINTS):
        scale = number % 3
        z = signals(rows, points, dtype)
        wide = z.astype(np.complex128)
        x, half = np.ascontiguousarray(z.real), np.ascontiguousarray(z[:, : points // 2 + 1])
        check(fourier.complex_to_complex(z, (1,), scale, True), np.fft.fft(wide, norm=SCALES[scale]), dtype)
        back = np.fft.ifft(wide, norm=SCALES[2 - scale])
        check(fourier.complex_to_complex(z, (1,), scale, False), back, dtype)
        check(fourier.real_to_complex(x, (1,), scale, True), np.fft.rfft(wide.real, norm=SCALES[scale]), dtype)
        check(fourier.real_to_complex(x, (1,), scale, False), np.fft.fft(wide.real, norm=SCALES[scale]), dtype)
        real = np.fft.irfft(half.astype(np.complex128), points, norm=SCALES[2 - scale])
        check(fourier.complex_to_real(half, (1,), scale, points), real, dtype)


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("dim", [(0,), (1,), (1, 2), (0, 1, 2)])
def test_dimensions_whose_neighbours_are_many(dim: tuple[int, ...], dtype: str) -> None:
    for shape in ((6, 10, 27), (4, 15, 16)):  # the last vector begins among those before, or is whole
        z = signals(shape[0] * shape[1], shape[2], dtype).reshape(shape)
        wide = z.astype(np.complex128)
        for scale in range(3):
            check(fourier.complex_to_complex(z, dim, scale, True), np.fft.fftn(wide, None, dim, SCALES[scale]), dtype)
            back = np.fft.ifftn(wide, None, dim, SCALES[2 - scale])
            check(fourier.complex_to_complex(z, dim, scale, False), back, dtype)


@pytest.mark.parametrize("points", [8192, 15000])
def test_many_points(points: int) -> None:
    z = signals(5, points, "float32")
    wide = z.astype(np.complex128)
    check(fourier.complex_to_complex(z, (1,), 0, True), np.fft.fft(wide), "float32")
    check(fourier.real_to_complex(np.ascontiguousarray(z.real), (1,), 0, True), np.fft.rfft(wide.real), "float32")


def test_parts_that_fit_into_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_CACHE", 1 << 13)  # two matrices at a time, and one in the end
    z = signals(7 * 10, 24, "float32").reshape(7, 10, 24)
    wide = z.astype(np.complex128)
    x, half = np.ascontiguousarray(z.real), np.ascontiguousarray(z[..., :13])
    check(fourier.complex_to_complex(z, (1, 2), 0, True), np.fft.fft2(wide), "float32")
    check(fourier.real_to_complex(x, (1, 2), 0, True), np.fft.rfft2(wide.real), "float32")
    check(fourier.complex_to_real(half, (1, 2), 2, 24), np.fft.irfft2(half.astype(np.complex128)), "float32")


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("dim", [(1, 2), (2, 1), (0, 1, 2)])
def test_several_dimensions(dim: tuple[int, ...], dtype: str) -> None:
    z = signals(6 * 10, 8, dtype).reshape(6, 10, 8)
    wide, shape = z.astype(np.complex128), [z.shape[each] for each in dim]
    for scale in range(3):
        check(fourier.complex_to_complex(z, dim, scale, True), np.fft.fftn(wide, None, dim, SCALES[scale]), dtype)
        back = np.fft.ifftn(wide, None, dim, SCALES[2 - scale])
        check(fourier.complex_to_complex(z, dim, scale, False), back, dtype)
        if dim[-1] != 2:
            continue
        x, half = np.ascontiguousarray(z.real), np.ascontiguousarray(z[..., :5])
        check(fourier.real_to_complex(x, dim, scale, True), np.fft.rfftn(wide.real, None, dim, SCALES[scale]), dtype)
        check(fourier.real_to_complex(x, dim, scale, False), np.fft.fftn(wide.real, None, dim, SCALES[scale]), dtype)
        real = np.fft.irfftn(half.astype(np.complex128), shape, dim, SCALES[2 - scale])
        check(fourier.complex_to_real(half, dim, scale, 8), real, dtype)


@pytest.mark.parametrize("shape", [(3, 7), (2, 32768), (0, 4), (4, 0)])
def test_what_numpy_has_to_do(shape: tuple[int, int]) -> None:
    assert fourier.real_to_complex(np.ones(shape), (1,), 0, True) is None


def test_other_layouts_are_numpys() -> None:
    x = np.ones((4, 4, 4))
    assert fourier.real_to_complex(x, (0,), 0, True) is None
    assert fourier.real_to_complex(x, (0, 1), 0, True) is None
    assert fourier.real_to_complex(np.ones((4, 7, 4)), (1, 2), 0, True) is None
    assert fourier.real_to_complex(x.swapaxes(0, 1), (2,), 0, True) is None
    assert fourier.complex_to_complex(x.astype(complex), (), 0, True) is None


def test_rows_do_not_meet() -> None:
    """A row has the same bits beside any others, and what is not finite stays in its row."""
    x = flambeau.randn(20, 60)
    alone = flambeau.stack([flambeau.fft.rfft(row) for row in x])
    assert flambeau.equal(flambeau.fft.rfft(x), alone)
    x[3, 5] = float("nan")
    damaged = flambeau.fft.rfft(x)
    assert damaged[3].isnan().all()
    assert flambeau.equal(damaged[4:], alone[4:])
    assert flambeau.equal(damaged[:3], alone[:3])


def test_the_ops_use_it() -> None:
    x = flambeau.randn(16, 100)
    with tiers.numpy_only():
        reference = flambeau.fft.fft(x), flambeau.fft.irfft(flambeau.fft.rfft(x))
    quick = flambeau.fft.fft(x), flambeau.fft.irfft(flambeau.fft.rfft(x))
    for left, right in zip(quick, reference, strict=True):
        assert not flambeau.equal(left, right)  # other additions in another order
        flambeau.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
