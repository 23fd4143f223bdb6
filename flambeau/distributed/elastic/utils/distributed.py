"""Ports, under the names of `torch.distributed.elastic.utils.distributed`."""

from __future__ import annotations

import socket
from contextlib import closing

__all__ = ["get_free_port", "get_socket_with_port"]


def get_socket_with_port() -> socket.socket:
    """A socket on a port of this machine that nobody uses; it listens to nobody, and is to be closed."""
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, socket.AF_UNSPEC, socket.SOCK_STREAM):
        try:
            made = socket.socket(family, kind, protocol)
        except OSError:
            continue
        try:
            made.bind(("localhost", 0))
            made.listen(0)
            return made
        except OSError:
            made.close()
    raise RuntimeError("Failed to create a socket")


def get_free_port() -> int:
    """A port of this machine that nobody used just now."""
    with closing(get_socket_with_port()) as made:
        port: int = made.getsockname()[1]
        return port
