"""Connections between all processes, arranged by a store.

Each process listens on a port, and says in the store where. It connects to all processes before it, and is connected to
by those after it. Who connects must know a word that is in the store only: strangers are turned away.

Processes of one machine connect by a Unix socket instead, which has no file, and give each other their arenas. That the
socket can be reached is what shows that they are on one machine: containers that share a kernel but not its network are
as far from each other as two machines.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from .._errors import DistNetworkError, DistStoreError
from ..stores import PrefixStore, Store
from ..tcp_store import TCPStore
from .arena import IS_AVAILABLE, Arena, PeerMemory

_HELLO = struct.Struct("<16sI")
_WORD_LENGTH = 16
_BUFFER = 1 << 22
_UNIX = getattr(socket, "AF_UNIX", None)
_SOON = 5.0
"""Seconds that a caller may take to say who it is."""


class Connections(NamedTuple):
    """A connection with each other process by its rank, the own arena, and those of the others that share memory."""

    sockets: dict[int, socket.socket]
    arena: Arena | None
    memories: dict[int, PeerMemory]

    def close(self) -> None:
        """Close the connections and memories."""
        for connection in self.sockets.values():
            connection.close()
        if self.arena is not None:
            self.arena.close()
        for memory in self.memories.values():
            memory.close()


def connect_all(rank: int, size: int, store: Store, limit: float) -> Connections:
    """Connect with every other process; what was opened is closed again if that fails."""
    made = Connections({}, None, {})
    if size == 1:
        return made
    end = time.monotonic() + limit
    try:
        with contextlib.ExitStack() as listeners:
            _meet(rank, size, store, end, made.sockets, listeners)
            for connection in made.sockets.values():
                connection.settimeout(max(0.001, end - time.monotonic()))
            local = {peer: each for peer, each in made.sockets.items() if each.family == _UNIX}
            if local:
                made = made._replace(arena=Arena())
                _share_memory(made, local)
        for connection in made.sockets.values():
            _tune(connection)
    except BaseException:
        made.close()
        raise
    return made


def _meet(
    rank: int, size: int, store: Store, end: float, found: dict[int, socket.socket], listeners: contextlib.ExitStack
) -> None:
    """Call those before, and be called by those after."""
    host = _own_address(store)
    network = listeners.enter_context(
        socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    )
    network.bind((host, 0))
    network.listen(size)
    selector = listeners.enter_context(selectors.DefaultSelector())
    selector.register(network, selectors.EVENT_READ)
    machine, name = _machine(), secrets.token_hex(8)
    if machine is not None:
        local = listeners.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        local.bind(_unix_address(name))
        local.listen(size)
        selector.register(local, selectors.EVENT_READ)
    if rank == 0:
        store.set("word", secrets.token_bytes(_WORD_LENGTH))
    store.set(f"address/{rank}", f"{host} {network.getsockname()[1]} {machine} {name}")
    word = _from_store(store, "word", 0, end)
    for peer in range(rank):
        found[peer] = _call(_from_store(store, f"address/{peer}", peer, end), machine, peer, end)
        with _naming(peer):
            found[peer].sendall(_HELLO.pack(word, rank))
    while len(found) < size - 1:
        peer, connection = _answer(selector, word, rank, size, found, end)
        found[peer] = connection


def _machine() -> str | None:
    """What processes that may share memory with this one have in common; None: there is no such memory."""
    if not IS_AVAILABLE or os.environ.get("FLAMBEAU_SHARED_MEMORY") == "0":
        return None
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or None
    except OSError:
        return None


def _unix_address(name: str) -> str:
    return f"\0flambeau-{name}"  # the zero: a name that is no file


def _share_memory(made: Connections, local: dict[int, socket.socket]) -> None:
    """Give the own arena to those on this machine, and get theirs."""
    assert made.arena is not None
    for peer, connection in local.items():
        with _naming(peer):
            socket.send_fds(connection, [b"m"], [made.arena.descriptor])
    for peer, connection in local.items():
        with _naming(peer):
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        if not descriptors:
            raise DistNetworkError(f"rank {peer} went away before it had shared its memory")
        made.memories[peer] = PeerMemory(descriptors[0])
        os.set_inheritable(descriptors[0], False)


@contextlib.contextmanager
def _naming(peer: int) -> Iterator[None]:
    """Let an error of a connection say with whom."""
    try:
        yield
    except OSError as error:
        raise DistNetworkError(f"rank {peer} was lost while the processes met: {error}") from error


def _from_store(store: Store, key: str, peer: int, end: float) -> bytes:
    try:
        store.wait([key], timedelta(seconds=max(0.001, end - time.monotonic())))
    except DistStoreError:
        raise DistNetworkError(f"rank {peer} did not come: it has not said where it listens") from None
    return store.get(key)


def _call(said: bytes, own_machine: str | None, peer: int, end: float) -> socket.socket:
    address, _, where = said.decode().partition(" ")
    port, _, where = where.partition(" ")
    machine, _, name = where.partition(" ")
    limit = max(0.001, end - time.monotonic())
    if machine == own_machine:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _naming(peer):
                connection.settimeout(limit)
                with contextlib.suppress(ConnectionRefusedError):  # the same kernel, but another network
                    connection.connect(_unix_address(name))
                    return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
    try:
        return socket.create_connection((address, int(port)), timeout=limit)
    except (OSError, ValueError) as error:
        raise DistNetworkError(f"rank {peer} cannot be reached at {address}, port {port}: {error}") from error


def _answer(
    selector: selectors.BaseSelector,
    word: bytes,
    rank: int,
    size: int,
    known: dict[int, socket.socket],
    end: float,
) -> tuple[int, socket.socket]:
    """The next process that connects and knows the word."""
    while True:
        ready = selector.select(max(0.001, end - time.monotonic()))
        if not ready:
            missing = [str(peer) for peer in range(rank + 1, size) if peer not in known]
            raise DistNetworkError(f"rank {' and '.join(missing)} did not connect to rank {rank} in time")
        listener = ready[0][0].fileobj
        assert isinstance(listener, socket.socket)
        connection, _ = listener.accept()
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
    if connection.family != _UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)


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
