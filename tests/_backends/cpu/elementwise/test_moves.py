"""Ops that move elements of large arrays: the same bits as PyTorch's, with any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import flambeau

ROWS, COLUMNS = 360, 370
"""More elements than one thread copies; neither a multiple of a vector's nor of a tile's."""

MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "repeat along rows": lambda torch, x: x.repeat(1, 3),
    "repeat along columns": lambda torch, x: x.repeat(3, 1),
    "repeat in new dimensions": lambda torch, x: x.repeat(2, 3, 1, 2),
    "repeat_interleave pairs": lambda torch, x: x.repeat_interleave(2, -1),
    "repeat_interleave triples": lambda torch, x: x.repeat_interleave(3, -1),
    "repeat_interleave 5": lambda torch, x: x.repeat_interleave(5, -1),
    "repeat_interleave 16": lambda torch, x: x.repeat_interleave(16, -1),
    "repeat_interleave rows": lambda torch, x: x.repeat_interleave(3, 0),
    "repeat_interleave flat": lambda torch, x: x.repeat_interleave(4),
    "stack last": lambda torch, x: torch.stack((x, x.flip(0), x), -1),
    "stack in the middle": lambda torch, x: torch.stack((x, x.flip(0)), 1),
    "cat of single columns": lambda torch, x: torch.cat((x[:, :1].repeat(200, 1),) * 2, 1),
    "cat of few columns": lambda torch, x: torch.cat((x.view(-1, 2), x.view(-1, 2)), 1),
    "tril": lambda torch, x: x.tril(),
    "tril below": lambda torch, x: x.view(10, -1, COLUMNS).tril(-7),
    "tril of all": lambda torch, x: x.tril(10**6),
    "tril of nothing": lambda torch, x: x.tril(-(10**6)),
    "triu": lambda torch, x: x.triu(3),
    "triu of a transpose": lambda torch, x: x.t().triu(-2),
    "flip first": lambda torch, x: x.flip(0),
    "flip last": lambda torch, x: x.flip(1),
    "flip in the middle": lambda torch, x: x.view(10, -1, COLUMNS).flip(1),
    "flip around the middle": lambda torch, x: x.view(10, -1, COLUMNS).flip(0, 2),
    "flip of a transpose": lambda torch, x: x.t().flip(0),
    "roll": lambda torch, x: x.roll((3, -2), (0, 1)),
    "roll whole": lambda torch, x: x.roll(1001),
    "pixel_shuffle": lambda torch, x: torch.nn.functional.pixel_shuffle(x.view(5, 8, -1, COLUMNS), 2),
    "pixel_shuffle by 3": lambda torch, x: torch.nn.functional.pixel_shuffle(x.view(5, 9, -1, COLUMNS // 2), 3),
    "pixel_shuffle of channels last": lambda torch, x: torch.nn.functional.pixel_shuffle(
        x.view(5, 8, -1, COLUMNS).contiguous(memory_format=torch.channels_last), 2
    ),
    "pixel_unshuffle": lambda torch, x: torch.nn.functional.pixel_unshuffle(x.view(5, 2, -1, COLUMNS), 2),
    "channel_shuffle": lambda torch, x: torch.nn.functional.channel_shuffle(x.view(5, 18, -1, COLUMNS // 2), 3),
    "unfold": lambda torch, x: torch.nn.functional.unfold(x.view(1, 6, -1, COLUMNS), 3, padding=1),
    "few columns to rows": lambda torch, x: x.view(-1, 3, COLUMNS // 2).permute(0, 2, 1).contiguous(),
    "quadruples": lambda torch, x: x.view(6, 4, 3, -1, 5).permute(0, 2, 4, 3, 1).contiguous(),
}
NOT_IN = {"unfold": ("int64", "uint8")}
"""Dtypes that an op refuses."""


@pytest.fixture(autouse=True)
def _usual_number_of_threads() -> Iterator[None]:
    number = flambeau.get_num_threads()
    yield
    flambeau.set_num_threads(number)


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex64", "complex128"]
)
@pytest.mark.parametrize("name", MOVES)
def test_bits_for_any_number_of_threads(name: str, dtype: str) -> None:
    if dtype in NOT_IN.get(name, ()):
        pytest.skip(f"{name} refuses {dtype}")
    numbers = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)) * 9
    move = MOVES[name]
    wanted = move(torch, torch.tensor(numbers).to(getattr(torch, dtype)))
    x = flambeau.tensor(numbers).to(getattr(flambeau, dtype))
    for threads in (1, 2, 3, 7):
        flambeau.set_num_threads(threads)
        got = move(flambeau, x)
        assert got.stride() == wanted.stride()
        np.testing.assert_array_equal(_bits(flambeau, got), _bits(torch, wanted))


def _bits(module: Any, tensor: Any) -> Any:
    return (tensor.view(module.int16) if tensor.dtype is module.bfloat16 else tensor).numpy()


def test_signs_of_zeros_and_payloads_of_nan_stay() -> None:
    given = np.full((ROWS, COLUMNS), -0.0, np.float32)
    given.view(np.uint32)[::7] = 0x7FA00001
    for move in (MOVES["stack last"], MOVES["repeat_interleave triples"], MOVES["pixel_shuffle"], MOVES["tril of all"]):
        got, wanted = (move(module, module.from_numpy(given)).numpy() for module in (flambeau, torch))
        np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))
