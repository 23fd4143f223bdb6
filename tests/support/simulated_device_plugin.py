"""A plugin for pytest, `-p tests.support.simulated_device_plugin`: the tests find a CUDA device, the simulated one.

With a seed in the environment variable `FLAMBEAU_SIMULATED_STREAMS` its streams run out of order, and a test in which
work races fails.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import pytest

from tests.support.simulated_cuda import COUNT, install_simulated_device

_SEED = os.environ.get("FLAMBEAU_SIMULATED_STREAMS")


def pytest_configure(config: pytest.Config) -> None:
    """Have the device before any test is imported."""
    if _SEED is None:
        install_simulated_device()
    else:
        from tests.support.out_of_order_cuda import install_out_of_order_devices

        install_out_of_order_devices(int(os.environ.get(COUNT, "1")))


@pytest.fixture(autouse=True)
def _without_races(request: pytest.FixtureRequest) -> Iterator[None]:
    """With a seed: what a test gives to the device runs in an order of the test's own, and nothing races."""
    if _SEED is None:
        yield
        return
    from tests.support.stream_schedule import SCHEDULE

    SCHEDULE.restart(zlib.crc32(f"{_SEED} {request.node.nodeid}".encode()))
    yield
    SCHEDULE.finish()
    assert not SCHEDULE.races, "\n".join(SCHEDULE.races)
