"""Abstract arrays beside NumPy's: the same shapes, types and strides, from the same calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau._core.arrays.abstract import AbstractArray, NeedsData, empty_meta

_CALLS: dict[str, Callable[[Any], Any]] = {
    "times int": lambda x: x * 2,
    "plus float": lambda x: x + 0.5,
    "with itself": lambda x: np.add(x, x),
    "comparison": lambda x: x == x,
    "where": lambda x: np.where(x != 0, x, 1),
    "astype": lambda x: x.astype(np.complex128),
    "copy": lambda x: x.copy(),
    "empty_like": np.empty_like,
    "sum": lambda x: x.sum(0),
    "sum kept": lambda x: x.sum(-1, keepdims=True),
    "sum of two": lambda x: np.add.reduce(x, (0, 2)),
    "max": lambda x: x.max(1),
    "any": lambda x: np.any(x, 0),
    "mean": lambda x: np.mean(x, 1),
    "var": lambda x: x.var(2),
    "argmax": lambda x: x.argmax(1),
    "cumsum": lambda x: np.cumsum(x, 1),
    "sort": lambda x: np.sort(x, axis=1),
    "argsort": lambda x: x.argsort(1),
    "reshape": lambda x: x.reshape(-1),
    "reshape 2": lambda x: x.reshape(x.shape[0], -1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 2),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "flip": lambda x: np.flip(x, 1),
    "roll": lambda x: np.roll(x, 1, 0),
    "take": lambda x: np.take(x, np.zeros((2, 1), int), 1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.zeros((x.shape[0], 1, x.shape[2]), int), 1),
    "repeat": lambda x: np.repeat(x, 3, 1),
    "concatenate": lambda x: np.concatenate([x, x], 1),
    "stack": lambda x: np.stack([x, x], 1),
    "tile": lambda x: np.tile(x, (2, 1)),
    "pad": lambda x: np.pad(x, ((1, 0), (0, 2), (0, 0))),
    "diff": lambda x: np.diff(x, axis=0),
    "matmul": lambda x: x @ x.swapaxes(-1, -2),
    "dot": lambda x: np.dot(x, np.ones(x.shape[-1])),
    "tensordot": lambda x: np.tensordot(x, x, ((0,), (0,))),
    "einsum": lambda x: np.einsum("abc,dbc->ad", x, x),
    "outer": lambda x: np.multiply.outer(x, x[0]),
    "tril": np.tril,
    "trace": np.trace,
    "diagonal": lambda x: np.diagonal(x, 0, 1, 2),
    "fft": lambda x: np.fft.fft(x, axis=1),
    "fftn": lambda x: np.fft.fftn(x, axes=(0, 1)),
    "svd": lambda x: np.linalg.svd(x, full_matrices=False),
    "element": lambda x: x[0, 1, 0],
    "from the end": lambda x: x[-1, ..., -2:],
    "backwards": lambda x: x[::-1, :, ::-2],
    "nothing": lambda x: x[1:1, 2:],
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "view as bytes": lambda x: np.ascontiguousarray(x, like=x).view(np.uint8),
    "imag": lambda x: x.astype(np.complex64).imag,
    "reshape of a part": lambda x: x[:, :2, :2].reshape(-1, 2),
    "reshape in columns": lambda x: x.reshape(-1, order="F"),
    "slices": lambda x: x[1:, None, ..., ::2],
    "array index": lambda x: x[:, [0, 1, 1]],
    "array indices apart": lambda x: x[[0, 1], :, [0, 0]],
    "two array indices": lambda x: x[:, np.zeros((2, 1), int), [0, 1]],
    "host mask": lambda x: x[np.ones(x.shape[0], bool)],
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
}
_ARRAYS = {
    "rows": np.ones((2, 3, 4), np.float32),
    "columns": np.asfortranarray(np.ones((4, 2, 3), np.float64)),
    "permuted": np.ones((3, 2, 4), np.float32).transpose(2, 0, 1),
    "with gaps": np.ones((3, 4, 6), np.float32)[:, ::2, 1:5],
    "integers": np.ones((2, 3, 2), np.int64),
}


@pytest.mark.parametrize("arrangement", _ARRAYS)
@pytest.mark.parametrize("name", _CALLS)
def test_results_are_arranged_as_those_of_numpy(name: str, arrangement: str) -> None:
    array = _ARRAYS[arrangement]
    expected = _CALLS[name](array)
    actual = _CALLS[name](empty_meta(array.shape, array.dtype, array.strides))
    several = isinstance(expected, tuple)
    for wanted, found in zip(expected if several else [expected], actual if several else [actual], strict=True):
        wanted = np.asarray(wanted)
        assert type(found) is AbstractArray
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        for size, one, other in zip(wanted.shape, wanted.strides, found.strides, strict=True):
            assert size == 1 or one == other, (wanted.shape, wanted.strides, found.strides)


@pytest.mark.parametrize(
    "read",
    [float, bool, int, np.asarray, list, lambda x: x.item(), lambda x: x[x > 0], lambda x: x.nonzero(), np.unique],
)
def test_elements_cannot_be_read(read: Callable[[Any], Any]) -> None:
    with pytest.raises(NeedsData):
        read(empty_meta((1,), np.dtype(np.float32)))


def test_no_memory_is_taken() -> None:
    large = empty_meta((1 << 20, 1 << 18), np.dtype(np.float32))
    assert (np.exp(large) @ large.T).shape == (1 << 20, 1 << 20)
