"""No test of this folder leaves the random numbers of others changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flambeau


@pytest.fixture(autouse=True)
def _same_numbers_afterwards() -> Iterator[None]:
    state = flambeau.get_rng_state()
    flambeau.manual_seed(0)
    yield
    flambeau.set_rng_state(state)
