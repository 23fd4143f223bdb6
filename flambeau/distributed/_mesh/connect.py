"""Connections between all processes, arranged by a store.

Each process listens on a port, and says in the store where. It connects to all processes before it, and is connected to
by those after it. Who connects must know a word that is in the store only: strangers are turned away.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import time
from datetime import timedelta

from .._errors import DistNetworkError, DistStoreError
from ..stores import PrefixStore, Store
from ..tcp_store import TCPStore

_HELLO = struct.Struct("<16sI")
_WORD_LENGTH = 16
_BUFFER = 1 << 22
_SOON = 5.0
"""Seconds that a caller may take to say who it is."""


def connect_all(rank: int, size: int, store: Store, limit: float) -> dict[int, socket.socket]:
    """A connection with each other process, by its rank."""
    if size == 1:
        return {}
    end = time.monotonic() + limit
    host = _own_address(store)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen(size)
        if rank == 0:
            store.set("word", secrets.token_bytes(_WORD_LENGTH))
        store.set(f"address/{rank}", f"{host} {listener.getsockname()[1]}")
        connections: dict[int, socket.socket] = {}
        try:
            word = _from_store(store, "word", 0, end)
            for peer in range(rank):
                connections[peer] = _call(_from_store(store, f"address/{peer}", peer, end), peer, end)
                connections[peer].sendall(_HELLO.pack(word, rank))
            while len(connections) < size - 1:
                peer, connection = _answer(listener, word, rank, size, connections, end)
                connections[peer] = connection
        except BaseException:
            for connection in connections.values():
                connection.close()
            raise
    for connection in connections.values():
        _tune(connection)
    return connections


def _from_store(store: Store, key: str, peer: int, end: float) -> bytes:
    try:
        store.wait([key], timedelta(seconds=max(0.001, end - time.monotonic())))
    except DistStoreError:
        raise DistNetworkError(f"rank {peer} did not come: it has not said where it listens") from None
    return store.get(key)


def _call(address: bytes, peer: int, end: float) -> socket.socket:
    host, _, port = address.decode().rpartition(" ")
    try:
        return socket.create_connection((host, int(port)), timeout=max(0.001, end - time.monotonic()))
    except (OSError, ValueError) as error:
        raise DistNetworkError(f"rank {peer} cannot be reached at {host}, port {port}: {error}") from error


def _answer(
    listener: socket.socket, word: bytes, rank: int, size: int, known: dict[int, socket.socket], end: float
) -> tuple[int, socket.socket]:
    """The next process that connects and knows the word."""
    while True:
        listener.settimeout(max(0.001, end - time.monotonic()))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            missing = [str(peer) for peer in range(rank + 1, size) if peer not in known]
            raise DistNetworkError(f"rank {' and '.join(missing)} did not connect to rank {rank} in time") from None
        try:
            connection.settimeout(_SOON)
            hello = b""
            while len(hello) < _HELLO.size and (more := connection.recv(_HELLO.size - len(hello))):
                hello += more
            said, peer = _HELLO.unpack(hello)
        except (OSError, struct.error):
            connection.close()
            continue
        if secrets.compare_digest(said, word) and rank < peer < size and peer not in known:
            return peer, connection
        connection.close()


def _tune(connection: socket.socket) -> None:
    connection.setblocking(False)
    for level, option, value in (
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER),
        (socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER),
    ):
        connection.setsockopt(level, option, value)


def _own_address(store: Store) -> str:
    """Where other processes reach this one: `GLOO_SOCKET_IFNAME`'s address, or that on the way to the store."""
    wanted = os.environ.get("GLOO_SOCKET_IFNAME")
    if wanted:
        found = _address_of_interface(wanted.partition(",")[0])
        if found is not None:
            return found
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return _address_towards(store.host, store.port) if isinstance(store, TCPStore) else "127.0.0.1"


def _address_towards(host: str, port: int) -> str:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:  # connecting such a socket sends nothing
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _address_of_interface(name: str) -> str | None:
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])  # SIOCGIFADDR
    except (ImportError, OSError):
        return None
