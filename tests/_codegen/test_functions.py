"""Elementary functions of generated code beside exact results: errors, special values, scalars and vectors."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType
from typing import Any

import llvmlite.ir as ir
import numpy as np
import pytest

from flambeau._codegen.arrays import Arguments
from flambeau._codegen.build import Builder
from flambeau._codegen.functions import FUNCTIONS
from flambeau._codegen.kernel import kernel
from flambeau._codegen.types import I32, SCALARS, VOID

Array = np.ndarray[Any, Any]


def _tool() -> ModuleType:
    path = pathlib.Path(__file__).parents[2] / "tools" / "accuracy_table.py"
    spec = importlib.util.spec_from_file_location("accuracy_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["accuracy_table"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
TWO = {name for name, case in TOOL.CASES.items() if case.inputs == 2} | {"logaddexp", "logaddexp2"}
LONGER = np.finfo(np.longdouble).nmant > 60


@kernel
def every_function(b: Builder, arguments: Arguments, dtype: str, width: int) -> None:
    """All functions of two arrays, which has to have a multiple of 16 elements: a row of results for each."""
    scalar = SCALARS[dtype]
    out, x, y = (arguments.array(position).data for position in range(3))
    size = arguments.array(1).size(0)
    with b.loop(0, size, width) as position:
        operands = [b.load(each, scalar, position, width) for each in (x, y)]
        for row, (name, function) in enumerate(FUNCTIONS.items()):
            b.store(out, scalar, size * row + position, function(b, *operands[: 2 if name in TWO else 1]))


@pytest.mark.parametrize("name", TOOL.CASES)
def test_float32_is_within_two_units(name: str) -> None:
    found = TOOL.measured(name, "float32", count=2000, step=65_521)
    assert found.largest <= 2, found


@pytest.mark.skipif(not LONGER, reason="needs floats longer than float64")
@pytest.mark.parametrize("name", TOOL.CASES)
def test_float64_is_within_two_units(name: str) -> None:
    found = TOOL.measured(name, "float64", count=1500)
    assert found.largest <= 2, found


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "erf", "sin", "power"])
def test_halves_are_rounded_once(name: str, dtype: str) -> None:
    assert TOOL.measured(name, dtype).largest <= 0.51


@pytest.mark.parametrize(("dtype", "widths"), [(np.float32, (4, 16)), (np.float64, (4,))])
def test_vectors_compute_what_scalars_do(dtype: type, widths: tuple[int, ...]) -> None:
    """Vectors of 8 are what the other tests use."""
    numbers = np.concatenate([TOOL.SPECIAL, np.random.default_rng(0).normal(size=200) * 3])
    with np.errstate(over="ignore"):
        x = np.resize(numbers, 320).astype(dtype)
    y = np.roll(x, 7)
    results = {}
    for width in (1, *widths):
        out = np.empty((len(FUNCTIONS), x.size), dtype)
        every_function(dtype.__name__, width)(out, x, y)
        results[width] = out
    for width in widths:
        for row, name in enumerate(FUNCTIONS):
            np.testing.assert_array_equal(results[width][row], results[1][row], err_msg=f"{name}, {width} lanes")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_division_is_exactly_numpys(name: str, dtype: type) -> None:
    x, y = TOOL.pairs(dtype, 5000, (-100.0, 100.0))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    got = TOOL.computed(name, dtype.__name__, x, y)
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials(name: str, dtype: type) -> None:
    x, y = TOOL.pairs(dtype, 5000, (-100.0, 100.0))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype(np.longdouble), y.astype(np.longdouble))
        got = TOOL.computed(name, dtype.__name__, x, y)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        with np.errstate(over="ignore"):
            rounded = expected.astype(dtype)
        ordinary = np.isfinite(rounded)
        np.testing.assert_array_equal(got[~ordinary], rounded[~ordinary])
        scale = np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(expected))[ordinary]
        larger = np.minimum(scale, np.maximum(np.abs(np.maximum(x, y)), 1)[ordinary])
        assert np.all(np.abs(got[ordinary] - expected[ordinary]) <= 2 * np.finfo(dtype).eps * larger)


def test_huge_angles() -> None:
    """Values from arithmetic with thousands of digits."""
    x = np.array([1e22, -1e22, 1e300, 6381956970095103.0 * 2.0**797, 2.0**1023])
    sines = [-0.8522008497671888, 0.8522008497671888, -0.8178819121159085, 1.0, 0.5631277798508840]
    np.testing.assert_allclose(TOOL.computed("sin", "float64", x), sines, rtol=3e-16)
    # This number is nearer to a multiple of pi/2 than any other double.
    np.testing.assert_allclose(TOOL.computed("cos", "float64", x)[3], -4.687165924254628e-19, rtol=3e-16)


def test_powers_with_special_operands() -> None:
    operands = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324]
    x, y = (np.ravel(each) for each in np.meshgrid(operands, operands))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    got = TOOL.computed("power", "float64", x, y)
    np.testing.assert_allclose(got, expected, rtol=3e-16)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


def test_every_function_is_measured_or_excused() -> None:
    assert set(FUNCTIONS) == set(TOOL.CASES) | {"logaddexp", "logaddexp2"}


def test_the_measure_sees_errors() -> None:
    """An exact result, its neighbour, and values that must not be."""
    exact = np.array([1.5, 1.5, np.inf, 0.0, 1e39, 1e-45])
    got = np.array([1.5, 1.5 + 2.0**-22, 1.0, -0.0, np.inf, 0.0], np.float32)
    np.testing.assert_allclose(TOOL.errors(got, exact, 23, -126), [0, 2, np.inf, np.inf, 0, 0.71], atol=0.01)


def test_integers_are_refused() -> None:
    b = Builder(ir.Module(), "f", VOID, [I32])
    for name, function in FUNCTIONS.items():
        with pytest.raises(TypeError):
            function(b, *b.arguments * (2 if name in TWO else 1))
