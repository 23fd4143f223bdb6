"""`TCPStore`: a store that one process serves to all others over the network.

The protocol is a page long. A request is an operation, a number of parts, and the parts, each with its length; an
answer is a state and parts in the same form. Lengths are checked before anything is read, parts are plain bytes, and a
client that says anything else is dropped: whoever reaches the port cannot make the server run,
allocate or crash anything.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from .._core.names.same_as import same_as
from .._core.process.locks import new_lock
from ._errors import DistNetworkError, DistStoreError
from ._forks import close_in_children
from .stores import DEFAULT_TIMEOUT, Store, Table, seconds

__all__ = ["TCPStore"]

_GREETING = b"flambeau store 1\n"
_HEAD = struct.Struct("<BI")
_LENGTH = struct.Struct("<I")
_INTEGER = struct.Struct("<q")
_MOST_PARTS = 1 << 16
_LONGEST_REQUEST = 1 << 28
_MOST_UNREAD = 1 << 16
_DONE, _TOO_LATE, _EMPTY, _WRONG = range(4)
_UNTIL_A_DESCRIPTOR_IS_FREE = 0.05
_SLOWEST = 5.0
"""Seconds that a server may take to say that a wait was in vain."""


def _packed(head: int, parts: Sequence[bytes]) -> bytes:
    pieces = [_HEAD.pack(head, len(parts))]
    for part in parts:
        pieces += (_LENGTH.pack(len(part)), part)
    return b"".join(pieces)


class _Malformed(Exception):
    """A peer that does not speak the protocol."""


def _parsed(data: bytearray) -> tuple[int, list[bytes], int] | None:
    """The first whole message in `data`, and its length; None: more is to come."""
    if len(data) < _HEAD.size:
        return None
    head, count = _HEAD.unpack_from(data)
    if count > _MOST_PARTS:
        raise _Malformed
    position, parts = _HEAD.size, []
    for _ in range(count):
        if position + _LENGTH.size > len(data):
            return None
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if position + length > _LONGEST_REQUEST:
            raise _Malformed
        if position + length > len(data):
            return None
        parts.append(bytes(data[position : position + length]))
        position += length
    return head, parts, position


# ----- operations: the methods of `Table`, their arguments and results as parts ------------------------------


class _Form(NamedTuple):
    """How values are parts of a message."""

    parts: Callable[[Any], list[bytes]]
    value: Callable[[list[bytes]], Any]


def _texts(parts: Sequence[bytes]) -> list[str]:
    return [part.decode() for part in parts]


_KEY = _Form(lambda key: [key.encode()], lambda parts: parts[0].decode())
_KEYS = _Form(lambda keys: [key.encode() for key in keys], _texts)
_BYTES = _Form(lambda value: [value], lambda parts: parts[0])
_SEVERAL = _Form(list, list)
_NUMBER = _Form(lambda number: [_INTEGER.pack(number)], lambda parts: _INTEGER.unpack(parts[0])[0])
_TRUTH = _Form(lambda truth: [b"1" if truth else b""], lambda parts: bool(parts[0]))
_NOTHING = _Form(lambda _: [], lambda _: None)
_PERHAPS = _Form(lambda value: [] if value is None else [value], lambda parts: parts[0] if parts else None)

_OPERATIONS: dict[str, tuple[tuple[_Form, ...], _Form]] = {
    "set": ((_KEY, _BYTES), _NOTHING),
    "add": ((_KEY, _NUMBER), _NUMBER),
    "append": ((_KEY, _BYTES), _NOTHING),
    "compare_set": ((_KEY, _BYTES, _BYTES), _BYTES),
    "delete": ((_KEY,), _TRUTH),
    "missing": ((_KEYS,), _KEYS),
    "get": ((_KEYS,), _SEVERAL),
    "count": ((), _NUMBER),
    "keys": ((), _KEYS),
    "push": ((_KEY, _BYTES), _NOTHING),
    "pop": ((_KEY,), _PERHAPS),
    "queue_length": ((_KEY,), _NUMBER),
}
"""The forms of the arguments and of the result; an operation's code is its place here."""
_BY_CODE = tuple(_OPERATIONS.items())
_CODES = {operation: code for code, operation in enumerate(_OPERATIONS)}
_WAIT = len(_OPERATIONS)


def _performed(table: Table, code: int, parts: list[bytes]) -> list[bytes]:
    """Call a method of the table with the arguments in a request; the parts of the answer."""
    operation, (forms, result) = _BY_CODE[code]
    given = [parts] if forms == (_KEYS,) else [[part] for part in parts]
    args = [form.value(each) for form, each in zip(forms, given, strict=True)]
    return result.parts(getattr(table, operation)(*args))


# ----- the server ---------------------------------------------------------------------------------------------


class _Client:
    """A connection, as the server sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.unread = bytearray()
        self.unsent = bytearray()
        self.greeted = False
        self.awaits: tuple[list[str], float] | None = None
        """The keys that it waits for, and until when."""


class Server:
    """Serves a table until the process ends; one thread, however many clients."""

    def __init__(self, host: str, port: int, listener: socket.socket | None = None) -> None:
        self._table = Table()
        self._listener = listener or _listener(host, port)
        self._clients: dict[Any, _Client] = {}
        opened: list[Any] = [self._listener]
        try:
            self._listener.setblocking(False)
            self.port: int = self._listener.getsockname()[1]
            self._selector = selectors.DefaultSelector()
            opened.append(self._selector)
            self._bell, self._rope = socket.socketpair()
            opened += [self._bell, self._rope]
            self._bell.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ)
            self._selector.register(self._bell, selectors.EVENT_READ)
            self._thread = threading.Thread(target=self._serve, name="flambeau store", daemon=True)
            self._thread.start()
        except BaseException as error:
            for each in opened:
                each.close()
            if isinstance(error, OSError):
                raise DistNetworkError(f"The server socket has failed to listen on port {port}: {error}") from error
            raise
        self._is_open = True
        close_in_children(self)

    def close_in_child(self) -> None:
        """In a forked process: leave the port to the one that serves."""
        self._is_open = False
        for each in (self._listener, self._bell, self._rope, *(client.connection for client in self._clients.values())):
            each.close()

    def close(self) -> None:
        """Stop to serve the store."""
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(OSError):
                self._rope.send(b"x")
            self._thread.join(_SLOWEST)
            self._rope.close()

    def _serve(self) -> None:
        try:
            while True:
                events = self._selector.select(self._next_deadline())
                for key, mask in events:
                    if key.fileobj is self._bell:
                        return
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._converse(self._clients[key.fileobj], mask)
                self._answer_waiting()
        finally:
            for client in list(self._clients.values()):
                self._drop(client)
            self._selector.close()
            self._listener.close()
            self._bell.close()

    def _next_deadline(self) -> float | None:
        ends = [client.awaits[1] for client in self._clients.values() if client.awaits]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError, InterruptedError):  # it has gone away meanwhile
            return
        except OSError:  # this process has no descriptor left: perhaps later
            time.sleep(_UNTIL_A_DESCRIPTOR_IS_FREE)
            return
        try:
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(connection, selectors.EVENT_READ)
        except OSError:
            connection.close()
            return
        self._clients[connection] = _Client(connection)

    def _drop(self, client: _Client) -> None:
        self._clients.pop(client.connection, None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.connection)
        client.connection.close()

    def _converse(self, client: _Client, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._flush(client)
            if mask & selectors.EVENT_READ:
                data = client.connection.recv(_MOST_UNREAD)
                if not data:
                    raise _Malformed
                client.unread += data
                self._read(client)
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, MemoryError, _Malformed):
            self._drop(client)

    def _read(self, client: _Client) -> None:
        if not client.greeted:
            start = bytes(client.unread[: len(_GREETING)])
            if not _GREETING.startswith(start):
                raise _Malformed
            if len(start) < len(_GREETING):
                return
            del client.unread[: len(_GREETING)]
            client.greeted = True
        while client.awaits is None and (message := _parsed(client.unread)) is not None:
            code, parts, length = message
            del client.unread[:length]
            self._perform(client, code, parts)

    def _perform(self, client: _Client, code: int, parts: list[bytes]) -> None:
        try:
            if code == _WAIT:
                limit = _INTEGER.unpack(parts[0])[0] / 1000
                client.awaits = (_texts(parts[1:]), time.monotonic() + limit)
                return
            answer = _packed(_DONE, _performed(self._table, code, parts))
        except DistStoreError as error:
            answer = _packed(_WRONG, [str(error).encode()])
        except (IndexError, TypeError, ValueError, struct.error):
            raise _Malformed from None
        self._send(client, answer)

    def _answer_waiting(self) -> None:
        now = time.monotonic()
        for client in list(self._clients.values()):
            if client.awaits is None:
                continue
            missing = self._table.missing(client.awaits[0])
            if missing and now < client.awaits[1]:
                continue
            client.awaits = None
            try:
                self._send(client, _packed(_TOO_LATE if missing else _DONE, [key.encode() for key in missing]))
                self._read(client)  # what it asked meanwhile
            except (OSError, MemoryError, _Malformed):
                self._drop(client)

    def _send(self, client: _Client, answer: bytes) -> None:
        client.unsent += answer
        self._flush(client)

    def _flush(self, client: _Client) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while client.unsent:
                del client.unsent[: client.connection.send(client.unsent)]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unsent else 0)
        if self._selector.get_key(client.connection).events != wanted:
            self._selector.modify(client.connection, wanted)


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DistNetworkError(f"The server socket has failed to listen on port {port}: {error}") from error
    return listener


# ----- the store ----------------------------------------------------------------------------------------------


class TCPStore(Store):
    """A store over the network: one process serves it (`is_master`), all others ask.

    >>> from datetime import timedelta
    >>> store = flambeau.distributed.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=30))
    >>> store.set("lunch", "soup")
    >>> store.get("lunch")
    b'soup'

    Args:
        host_name (str): where it is served.
        port (int): the port; 0 lets the serving process choose one.
        world_size (int, optional): how many processes use it; None means any number.
        is_master (bool): whether this process serves it. Default: `False`.
        timeout (timedelta): how long to wait before an error. Default: `datetime.timedelta(seconds=300)`.
        wait_for_workers (bool): whether the serving process waits for the others. Default: `True`.
        multi_tenant (bool): whether several stores of one process share a port. Default: `False`.
        master_listen_fd (int, optional): the descriptor of a socket that listens already.
        use_libuv (bool): not used. Default: `True`.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self._timeout = timeout
        self._host = host_name
        listener = None if master_listen_fd is None else socket.socket(fileno=master_listen_fd)
        self._server: Server | None = None
        if is_master:
            try:
                self._server = Server(host_name, port, listener)
            except DistNetworkError:
                if not multi_tenant:
                    raise
        self._port = self._server.port if self._server else port
        self._lock = new_lock()
        self._unread = bytearray()
        self._connection: socket.socket | None = None
        try:
            self._connection = _connected(host_name, self._port, seconds(None, timeout))
            if wait_for_workers and world_size is not None and world_size > 0:
                self._wait_for_workers(world_size)
        except BaseException:
            self.close()
            raise

    def _wait_for_workers(self, world_size: int) -> None:
        if self.add("init/count", 1) >= world_size:
            self.set("init/all", "1")
        try:
            self.wait(["init/all"])
        except DistStoreError:
            come = self.add("init/count", 0)
            limit = self._timeout.total_seconds()
            raise DistStoreError(
                f"Timed out after {limit:.0f} seconds waiting for clients. {come}/{world_size} clients joined."
            ) from None

    host: str = same_as("_host", "The machine that serves.")
    port: int = same_as("_port", "The port that is served.")

    @property
    def libuvBackend(self) -> bool:
        """Whether the server is PyTorch's newer one: its choice makes no difference here."""
        return False

    def clone(self) -> Store:
        """Another connection to the same table, for another thread."""
        return TCPStore(self._host, self._port, timeout=self._timeout, wait_for_workers=False)

    def close(self) -> None:
        """Leave, and stop serving."""
        self._hang_up()
        if self._server is not None:
            self._server.close()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        self._unread.clear()
        if connection is not None:
            connection.close()

    def __del__(self, _at_the_end: Callable[[], bool] = sys.is_finalizing) -> None:  # modules may be gone by then
        if not _at_the_end() and hasattr(self, "_connection"):
            self.close()

    def _ask(self, code: int, *parts: bytes, limit: float = 0.0) -> tuple[int, list[bytes]]:
        """Send a request and read the answer; `limit`: seconds that the server may take by intention."""
        with self._lock:
            try:
                if self._connection is None:  # the last request failed, or was interrupted
                    self._connection = _connected(self._host, self._port, min(_SLOWEST, self._timeout.total_seconds()))
                self._connection.settimeout(max(limit, self._timeout.total_seconds()) + _SLOWEST)
                self._connection.sendall(_packed(code, parts))
                while (message := _parsed(self._unread)) is None:
                    data = self._connection.recv(1 << 18)
                    if not data:
                        raise ConnectionError("the server has closed the connection")
                    self._unread += data
            except BaseException as error:  # the answer that may still come is not that of the next request
                self._hang_up()
                if not isinstance(error, (OSError, DistNetworkError, _Malformed)):
                    raise
                raise DistNetworkError(
                    f"store at {self._host}:{self._port} does not answer: {str(error) or 'it says nonsense'}. "
                    "Has the process that serves it (rank 0, or the launcher) ended?"
                ) from error
            state, answer, length = message
            del self._unread[:length]
        if state == _WRONG:
            raise DistStoreError(answer[0].decode(errors="replace") if answer else "the store refused")
        return state, answer

    def _perform(self, operation: str, *args: Any) -> Any:
        forms, result = _OPERATIONS[operation]
        parts = [part for form, value in zip(forms, args, strict=True) for part in form.parts(value)]
        return result.value(self._ask(_CODES[operation], *parts)[1])

    def _await(self, keys: Sequence[str], limit: float) -> None:
        state, missing = self._ask(
            _WAIT, _INTEGER.pack(int(limit * 1000)), *(key.encode() for key in keys), limit=limit
        )
        if state == _TOO_LATE:
            names = ", ".join(_texts(missing))
            raise DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {names}")


def _connected(host: str, port: int, limit: float) -> socket.socket:
    """A connection to the server, which may start only in a while."""
    end, pause = time.monotonic() + limit, 0.01
    while True:
        remaining = end - time.monotonic()
        try:
            connection = socket.create_connection((host, port), timeout=max(0.05, remaining))
        except OSError as error:
            if time.monotonic() + pause >= end:
                raise DistNetworkError(
                    f"The client socket has timed out after {limit * 1000:.0f}ms while trying to connect to "
                    f"({host}, {port}): {error}"
                ) from error
            time.sleep(pause)
            pause = min(pause * 2, 0.3)
            continue
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(_GREETING)
        except OSError as error:
            connection.close()
            raise DistNetworkError(f"The client socket to ({host}, {port}) was lost: {error}") from error
        return connection
