"""Generated kernels that continue edges: the same elements as NumPy's and PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._backends.tiers import available, numpy_only

pytestmark = pytest.mark.skipif(not available(), reason="code cannot be generated here")

CASES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3, 40), (5, 9)),
    ((2, 200), (0, 3)),
    ((2, 3, 7, 5), (2, 1, 0, 3)),
    ((1, 4, 20, 33), (1, 1, 1, 1)),
    ((3, 4, 5, 30), (1, 2, 2, 1, 2, 0)),
    ((2, 3, 4, 5), (2, -1, 1, 0)),
]


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "complex128"])
def test_edges(mode: str, dtype: str) -> None:
    def run(T: Any, shape: tuple[int, ...], padding: tuple[int, ...]) -> Any:
        x = T.tensor(np.random.default_rng(1).standard_normal(shape)).to(getattr(T, dtype))
        padded = T.nn.functional.pad
        return [padded(each, padding, mode) for each in (x, x.transpose(0, 1).contiguous().transpose(0, 1))]

    for case in CASES:
        with numpy_only():
            reference = run(flambeau, *case)
        for ours, numpy, theirs in zip(run(flambeau, *case), reference, run(pytorch, *case), strict=True):
            assert ours.stride() == numpy.stride() == theirs.stride()
            assert ours.equal(numpy)
            np.testing.assert_array_equal(
                ours.to(flambeau.complex128).numpy(), theirs.to(pytorch.complex128).numpy(), strict=True
            )
