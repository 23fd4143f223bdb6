"""Vectors put together and taken apart, as kernels of convolutions use them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._codegen.arrays import Arguments
from flambeau._codegen.build import Builder
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
    for row, vector in enumerate(transposed(b, [b.load(source, float32, 4 * row, 4) for row in range(4)])):
        b.store(out, float32, 4 * row, vector)


def test_gathered() -> None:
    source, out = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    assert reverse_four()(out, source) is out
    assert out.tolist() == [4, 3, 2, 1]


def test_transposed() -> None:
    source, out = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    transpose_four()(out, source)
    np.testing.assert_array_equal(out, source.T)
