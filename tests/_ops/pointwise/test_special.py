"""Special functions: few elements and many, by generated code and by NumPy alone, and layouts of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flambeau._backends.tiers import generated, numpy_only
from flambeau._ops.pointwise import bessel_kernels, special_kernels
from tests.support.differential import differential

INF, NAN = float("inf"), float("nan")
NAMES = ["erfc", "erfcx", "erfinv", "lgamma", "digamma", "trigamma", "i0", "i0e", "i1", "i1e"]
BESSEL = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "k0", "k1", "k0e", "k1e"]
EDGES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, -3.0, 0.5, -0.5, 1.5, 2.5, 8.0, -8.0, 10.0, 1e-30, -1e-30]


@pytest.mark.skipif(generated("pointwise") is None, reason="no code generator")
@pytest.mark.parametrize("count", [3, 700])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*NAMES, *BESSEL, "airy_ai", "spherical_bessel_j0"])
def test_generated_code_agrees_with_numpy(name: str, dtype: str, count: int) -> None:
    function: Any = getattr(special_kernels if name in NAMES else bessel_kernels, name)
    source = np.random.RandomState(count)
    spread = [source.uniform(-1, 1, count), source.uniform(-9, 30, count), EDGES]
    x = np.concatenate(spread).astype(dtype)
    with np.errstate(all="ignore"):
        result = function(x)
        with numpy_only():
            expected = function(x)
    assert result.dtype == expected.dtype == x.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-6 if dtype == "float32" else 2e-13, atol=2e-15)
    np.testing.assert_array_equal(np.signbit(result[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("name", ["erfinv", "lgamma", "digamma", "i0", "erfc", "sinc"])
@differential
def test_layouts_of_many_elements(T: Any, name: str) -> Any:
    base = T.linspace(0.1, 0.9, 24 * 300).reshape(20, 30, 12)
    return [getattr(x, name)().stride() for x in (base.permute(2, 0, 1), base[:, ::2], base[:1].expand(30, 30, 12))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@differential
def test_ndtri_far_out(T: Any, dtype: str) -> Any:
    tails = [0.0, 1e-45, 1e-38, 1e-30, 1e-20, 1e-10, 1e-5, 0.01, 0.3, 0.5, 0.500001, 0.9, 0.9999, 1.0, -1e-30, 1.5]
    x = T.tensor(tails, dtype=getattr(T, dtype))
    return T.special.ndtri(x), T.special.ndtri(x.repeat(300))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@differential
def test_log1p_of_tiny_complex_numbers(T: Any, dtype: str) -> Any:
    numbers = [1e-19 + 1e-18j, 1e-10 - 1e-12j, -1e-30j, 1e-3 + 1e-5j, -0.3 + 0.4j, -2 + 1e-3j, 5 - 7j, 1e30 + 1e30j]
    result = T.tensor(numbers, dtype=getattr(T, dtype)).log1p()
    return result.real, result.imag


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@differential
def test_neighbours_in_half_precision(T: Any, dtype: str) -> Any:
    x = T.tensor([1.0, -1.0, 0.5, 1000.0, 0.1, T.inf, T.nan], dtype=getattr(T, dtype))
    return T.nextafter(x, T.zeros_like(x)), T.nextafter(x, T.full_like(x, T.inf)), T.nextafter(x, x)
