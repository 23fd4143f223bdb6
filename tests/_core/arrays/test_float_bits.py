"""The types that NumPy lacks, converted by their bits, beside ml-dtypes: every pattern, rounding from wider types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._core.arrays import float_bits

REAL = [name for name in float_bits.ARRAY_TYPES if name != "complex32"]


def unsigned(name: str) -> Any:
    return np.dtype(f"u{float_bits.ARRAY_TYPES[name].itemsize}")


def numbers() -> Any:
    """float32 at and beside every point where rounding to 16 bits changes, random patterns, and ordinary numbers."""
    random = np.random.default_rng(0)
    tops = np.arange(65536, dtype=np.uint32) << np.uint32(16)
    beside = [tops + np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    patterns = np.concatenate([*beside, random.integers(0, 2**32, 200_000, dtype=np.uint32)]).view(np.float32)
    scaled = random.standard_normal(100_000) * 2.0 ** random.integers(-20, 20, 100_000)
    return np.concatenate([patterns, scaled.astype(np.float32)])


@pytest.mark.parametrize("name", REAL)
def test_every_pattern_is_read_as_in_ml_dtypes(name: str) -> None:
    patterns = np.arange(256 ** unsigned(name).itemsize).astype(unsigned(name))
    with np.errstate(invalid="ignore"):
        expected = patterns.view(getattr(ml_dtypes, name)).astype(np.float32)
    found = float_bits.decoded(patterns.view(float_bits.ARRAY_TYPES[name]))
    assert found.dtype == np.float32
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "next to float32", "int64", "bool"])
@pytest.mark.parametrize("name", REAL)
def test_rounding_is_that_of_ml_dtypes_to_the_bit(name: str, source: str) -> None:
    given = numbers()
    with np.errstate(all="ignore"):
        if source == "next to float32":
            given = np.nextafter(given.astype(np.float64), np.inf)
        elif source in ("int64", "bool"):
            given = np.arange(-70_000, 70_000).astype(source)
        else:
            given = given.astype(source)
        expected = given.astype(getattr(ml_dtypes, name)).view(unsigned(name))
        found = float_bits.encoded(given, float_bits.ARRAY_TYPES[name]).view(unsigned(name))
    different = found != expected
    assert not different.any(), (given[different][:5], found[different][:5], expected[different][:5])


def test_complex32_is_that_of_ml_dtypes_to_the_bit() -> None:
    given = numbers().view(np.complex64)
    with np.errstate(all="ignore"):
        expected = given.astype(ml_dtypes.complex32)
        found = float_bits.encoded(given, float_bits.ARRAY_TYPES["complex32"])
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
        wide = float_bits.decoded(found)
        assert np.array_equal(wide.view(np.uint64), expected.astype(np.complex64).view(np.uint64))


@pytest.mark.parametrize("name", [name for name in REAL if name != "float8_e8m0fnu"])
def test_limits_are_those_of_ml_dtypes(name: str) -> None:
    expected = ml_dtypes.finfo(getattr(ml_dtypes, name))
    for field, value in float_bits.limits(name)._asdict().items():
        assert value == float(getattr(expected, field)), field


@pytest.mark.parametrize("name", float_bits.ARRAY_TYPES)
def test_shapes_and_strides_are_kept(name: str) -> None:
    array_type = float_bits.ARRAY_TYPES[name]
    whole = float_bits.encoded(np.arange(1, 25).reshape(2, 3, 4), array_type)
    for array in (whole, whole[:, ::2, 1:], whole.transpose(2, 0, 1), whole[0, 0, 0], whole[:0]):
        found = float_bits.decoded(array)
        assert found.shape == array.shape
        back = float_bits.encoded(found, array_type)
        assert back.shape == array.shape
        assert back.dtype is array_type
        assert np.array_equal(np.asarray(back), np.asarray(array))
