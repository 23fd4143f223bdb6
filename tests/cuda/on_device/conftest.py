"""What the tests of a device share: they are skipped without one, and those for a GPU alone on the simulated one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import flambeau as torch


def is_simulated() -> bool:
    """Whether the device is the host in disguise."""
    from flambeau._backends.cuda.runtime.driver import driver

    torch.cuda.init()
    several = getattr(driver(), "all", None)
    return type(several[0] if several else driver()).__name__ in ("SimulatedDriver", "OutOfOrderDriver")


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark."""
    config.addinivalue_line("markers", "needs_gpu: a test that the simulated device cannot run")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what cannot run here."""
    present = torch.cuda.is_available()
    simulated = present and is_simulated()
    for item in items:
        if "on_device" not in str(item.path):
            continue
        if not present:
            item.add_marker(pytest.mark.skip(reason="a GPU"))
        elif simulated and item.get_closest_marker("needs_gpu"):
            item.add_marker(pytest.mark.skip(reason="a GPU, not the simulated device"))


@pytest.fixture(autouse=True)
def _clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test finds the device's settings and memory as they were at the beginning."""
    yield
    if torch.cuda.is_available():
        if "compiled" in request.path.name:
            torch.compiler.reset()  # graphs go, and their memory
            gc.collect()
        torch.cuda.set_sync_debug_mode(0)
        torch.cuda.empty_cache()
