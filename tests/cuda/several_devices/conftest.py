"""What the tests of several devices share: they are skipped where there are not two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import flambeau as torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what cannot run here."""
    if torch.cuda.device_count() < 2:
        for item in items:
            if "several_devices" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="there are not two GPUs"))


@pytest.fixture(autouse=True)
def _first_device_in_use() -> Iterator[None]:
    """A test begins on the first device, and leaves no other one in use."""
    yield
    if torch.cuda.is_available():
        assert torch.cuda.current_device() == 0
