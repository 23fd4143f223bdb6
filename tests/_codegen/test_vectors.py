"""Vectors put together and taken apart, as kernels of convolutions use them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._codegen.arrays import Arguments
from flambeau._codegen.build import Builder
from flambeau._codegen.constants import vector
from flambeau._codegen.kernel import kernel
from flambeau._codegen.products.gemm import transposed
from flambeau._codegen.types import float32


@kernel
def reverse_four(b: Builder, args: Arguments) -> None:
    """Write four numbers in reverse order. What stands far behind them is fetched, if there is anything."""
    out, source = (args.array(i).data for i in range(2))
    b.prefetch(b.offset(source, 1 << 40))
    numbers = [b.load(source, float32, 3 - i) for i in range(4)]
    b.store(out, float32, 0, b.gathered(numbers))


@kernel
def transpose_four(b: Builder, args: Arguments) -> None:
    """Transpose a matrix of 4x4."""
    out, source = (args.array(i).data for i in range(2))
    for row, column in enumerate(transposed(b, [b.load(source, float32, 4 * row, 4) for row in range(4)])):
        b.store(out, float32, 4 * row, column)


@kernel
def write_zeros(b: Builder, args: Arguments) -> None:
    """Write 0, 0, -0 and -0 as single numbers, then as vectors of two."""
    out = args.array(0).data
    for place, number in enumerate((0.0, 0.0, -0.0, -0.0)):
        b.store(out, float32, place, b.constant(float32.compute, number))
        b.store(out, float32, 4 + 2 * place, b.constant(vector(float32.compute, 2), number))


def test_gathered() -> None:
    source, out = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    assert reverse_four()(out, source) is out
    assert out.tolist() == [4, 3, 2, 1]


def test_transposed() -> None:
    source, out = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    transpose_four()(out, source)
    np.testing.assert_array_equal(out, source.T)


def test_zeros_keep_their_signs() -> None:
    out = np.ones(12, np.float32)
    write_zeros()(out)
    assert not out.any()
    assert np.signbit(out).tolist() == [False, False, True, True] + [False] * 4 + [True] * 4
