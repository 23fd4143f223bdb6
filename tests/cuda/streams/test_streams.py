"""A sample of seeds over all programs, and planted races, in a process with out-of-order devices.

`tests/cuda/test_streams.py` runs this file; elsewhere there is no such device, and nothing here is collected.
"""

from __future__ import annotations

import os

import pytest

from tests.support.simulated_cuda import COUNT

if "FLAMBEAU_SIMULATED_STREAMS" not in os.environ:
    pytest.skip("the devices of this process are in order", allow_module_level=True)

from flambeau._backends.cuda.runtime.devices import on_device
from tests.cuda.streams import planted, runs
from tests.cuda.streams.programs import Program
from tests.support.out_of_order_runtime import Runtime
from tests.support.stream_schedule import SCHEDULE

DEVICES = int(os.environ.get(COUNT, "1"))
TRIES = 40
"""Under so many seeds a race is to be found."""


@pytest.mark.parametrize("name", sorted(runs.ALL))
def test_programs_do_not_race(name: str) -> None:
    assert [found for seed in range(4) if (found := runs.failure(name, seed)) is not None] == []


def found(program: Program) -> bool:
    """Whether a race is found, or a wrong result, under any of the first seeds."""
    expected, races = runs.run(program, runs.IN_ORDER)
    for seed in range(TRIES):
        if races:
            break
        results, races = runs.run(program, seed)
        if results != expected:
            races = ["other results"]
    SCHEDULE.races.clear()
    return bool(races)


@pytest.mark.skipif(DEVICES < 2, reason="some need two devices")
@pytest.mark.parametrize("name", sorted(planted.USERS))
def test_planted_races_of_programs_are_found(name: str) -> None:
    assert found(planted.USERS[name])


@pytest.mark.skipif(DEVICES < 2, reason="some need two devices")
@pytest.mark.parametrize("name", sorted(planted.BACKEND))
def test_planted_races_of_the_backend_are_found(name: str) -> None:
    program, patch = planted.BACKEND[name]
    with patch():
        assert found(program)


@pytest.mark.skipif(DEVICES < 2, reason="it needs two devices")
def test_finalizers_in_the_middle_of_a_copy_between_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of any device may be collected at any moment: the copy still waits in the right streams."""
    copied = Runtime.memcpyPeerAsync

    def copy(self: Runtime, *given: int) -> None:
        for device in (0, 1):
            with on_device(device):
                pass
        copied(self, *given)

    monkeypatch.setattr(Runtime, "memcpyPeerAsync", copy)
    for name in ("copies_between_devices", "layers_on_two_devices"):
        assert [found for seed in range(4) if (found := runs.failure(name, seed)) is not None] == []


@pytest.mark.skipif(DEVICES < 2, reason="some need two devices")
def test_a_race_names_both_lines() -> None:
    _, races = runs.run(planted.an_event_recorded_too_early, 3)
    SCHEDULE.races.clear()
    assert any("x.mul_(2)" in each and "y = x + 1" in each and "neither waits" in each for each in races)
