"""Views of device arrays: the same elements as on the CPU, in the same memory as what they are views of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(4, -1),
    "transpose": lambda x: x.transpose(0, 2),
    "split": lambda x: x.split(2, 2),
    "chunk of a view": lambda x: x[1:].chunk(3, -1),
    "chunk of another view": lambda x: x[:-1].chunk(3, -1),
    "chunk of a transposed one": lambda x: x.transpose(0, 1).chunk(2, 0),
    "parts of parts": lambda x: [part for half in x.split(3, 2) for part in half.split(1, 2)],
    "parts of which the last is smaller": lambda x: x.split(4, 2),
    "unbind": lambda x: x.unbind(1),
    "unbind of a permuted view": lambda x: x.permute(2, 0, 1)[2:].unbind(),
    "permute": lambda x: x.permute(1, 2, 0),
    "t": lambda x: x[1].t(),
    "unsqueeze": lambda x: [x.unsqueeze(dim) for dim in range(-4, 4)],
    "unsqueeze of a view": lambda x: [x[1:, :, ::2].transpose(1, 2).unsqueeze(dim) for dim in range(4)],
    "slice": lambda x: [x[:, 1:3], x[:, :, 1::2], x[..., 2:].transpose(0, 1)[1:]],
    "slice without elements": lambda x: [x[:, 2:2], x[:, :, 6:]],
    "select": lambda x: [x[1], x[:, -1], x.transpose(0, 2).select(1, 2)],
    "select of the only dimension": lambda x: [x[1, 2][3], x[0, :, 5][-1]],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_of_the_same_memory(name: str) -> None:
    """The second time too, when parts are found that were cut before, and of an array that lies elsewhere."""
    for shift in (0, 100, 200):
        here = torch.arange(48.0).reshape(2, 4, 6) + shift
        there = here.cuda()
        expected, found = VIEWS[name](here), VIEWS[name](there)
        pairs = [(expected, found)] if isinstance(expected, torch.Tensor) else list(zip(expected, found, strict=True))
        for own, other in pairs:
            assert other.tolist() == own.tolist()
            assert (other.stride(), other.storage_offset()) == (own.stride(), own.storage_offset())
            assert other._base is there
            own[...], other[...] = -own, -other.clone()
        assert there.tolist() == here.tolist()
