"""A place for a server that says whether an agent is alive; a deployment has its own."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["HealthCheckServer", "create_healthcheck_server"]

_logger = logging.getLogger(__name__)


class HealthCheckServer:
    """What a deployment derives its server from: `alive_callback` gives the time of the last progress.

    As in PyTorch, this class itself listens to nobody.
    """

    def __init__(self, alive_callback: Callable[[], int], port: int, timeout: int) -> None:
        self._alive_callback = alive_callback
        self._port = port
        self._timeout = timeout

    @property
    def alive_callback(self) -> Callable[[], int]:
        """What gives the time of the last progress."""
        return self._alive_callback

    def start(self) -> None:
        """Say that there is no server."""
        _logger.warning("No health check server started")

    def stop(self) -> None:
        """Say that there is none to stop."""
        _logger.info("Stopping noop health check server.")


def create_healthcheck_server(alive_callback: Callable[[], int], port: int, timeout: int) -> HealthCheckServer:
    """The object of an agent."""
    return HealthCheckServer(alive_callback, port, timeout)
