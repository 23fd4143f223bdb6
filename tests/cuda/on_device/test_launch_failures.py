"""Work number n of a step, a launch, a copy or a product, fails as a driver refuses it: the next step is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from flambeau import nn
from flambeau._backends.cuda.runtime.driver import driver
from tests.support.simulated_cuda import SimulatedDriver

from .test_out_of_memory import Scaled, Training, layers

_EVERY = 3
"""Of the places of a step every so manieth is tried."""


class _Refused(RuntimeError):
    """What a launch ends with."""


@contextmanager
def _failing(place: int | None) -> Iterator[list[int]]:
    """A context in which the work of this number fails; how much there was is counted in the list."""
    device: Any = driver()
    do, count = device._do, [0]

    def counted(step: Callable[[], Any]) -> Any:
        count[0] += 1
        if count[0] == place:
            raise _Refused("CUDA driver error: the launch was refused")
        return do(step)

    vars(device)["_do"] = counted
    try:
        yield count
    finally:
        del vars(device)["_do"]


@pytest.mark.parametrize("kind", [Training, Scaled])
def test_work_that_is_refused(kind: Callable[..., Training]) -> None:
    if not isinstance(driver(), SimulatedDriver):
        pytest.skip("a real device cannot be made to refuse")
    training = kind(*layers())
    training.begin()
    expected = training.step()
    training.begin()
    with _failing(None) as count:
        assert training.step() == expected
    assert count[0] >= 20
    for place in range(1, count[0] + 1, _EVERY):
        training.begin()
        with _failing(place), pytest.raises(RuntimeError, match="was refused"):
            training.step()
        training.begin()
        assert training.step() == expected, place


def test_a_refused_copy_leaves_the_tensor() -> None:
    if not isinstance(driver(), SimulatedDriver):
        pytest.skip("a real device cannot be made to refuse")
    layer = nn.Linear(3, 2).cuda()
    before = layer.weight.tolist()
    with _failing(1), pytest.raises(RuntimeError, match="was refused"):
        layer.weight.data.mul_(2)
    assert layer.weight.tolist() == before
