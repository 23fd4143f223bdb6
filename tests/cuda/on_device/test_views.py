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
