"""A plugin for pytest, `-p tests.support.simulated_device_plugin`: the tests find a CUDA device, the simulated one."""

from __future__ import annotations

import pytest

from tests.support.simulated_cuda import install_simulated_device


def pytest_configure(config: pytest.Config) -> None:
    """Have the device before any test is imported."""
    install_simulated_device()
