"""Stores: small tables of keys and bytes by which processes find each other.

`HashStore` is for the threads of a process, `FileStore` for processes that share a folder, `TCPStore` (`tcp_store.py`)
for processes that share a network. What they hold are bytes; nothing in them is ever executed or unpickled.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from .._core.names.same_as import same_as
from .._core.process.locks import new_condition
from ._errors import DistQueueEmptyError, DistStoreError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None
msvcrt: Any = importlib.import_module("msvcrt") if importlib.util.find_spec("msvcrt") else None

DEFAULT_TIMEOUT = timedelta(seconds=300)
_BETWEEN_LOOKS = 0.01


def as_bytes(value: Any) -> bytes:
    """A value as stores keep it."""
    return value.encode() if isinstance(value, str) else bytes(value)


def seconds(timeout: Any, default: timedelta) -> float:
    """A timeout, which is a `timedelta` or a number of seconds; None: the default."""
    given = default if timeout is None else timeout
    return given.total_seconds() if isinstance(given, timedelta) else float(given)


class Table:
    """The state of a store and what can be done to it; whoever shares it keeps others out meanwhile."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, list[bytes]] = {}

    def set(self, key: str, value: bytes) -> None:
        """Store a value under a key."""
        self.values[key] = value

    def add(self, key: str, amount: int) -> int:
        """Count; the new number."""
        old = self.values.get(key, b"0")
        try:
            number = int(old) + amount
        except ValueError:
            raise DistStoreError(f"store key {key!r} holds {old[:40]!r}, which is no number to add to") from None
        self.values[key] = str(number).encode()
        return number

    def append(self, key: str, value: bytes) -> None:
        """Append bytes to the value under a key."""
        self.values[key] = self.values.get(key, b"") + value

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """Replace a value that is as expected; what the key holds then."""
        held = self.values.get(key)
        if held is None and expected:
            return expected
        if held is None or held == expected:
            self.values[key] = desired
            return desired
        return held

    def delete(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return self.values.pop(key, None) is not None

    def push(self, key: str, value: bytes) -> None:
        """Put a value at the end of a queue."""
        self.queues.setdefault(key, []).append(value)

    def pop(self, key: str) -> bytes | None:
        """Take the first value of a queue."""
        queue = self.queues.get(key)
        if not queue:
            return None
        value = queue.pop(0)
        if not queue:
            del self.queues[key]
        return value

    def queue_length(self, key: str) -> int:
        """How many values wait in a queue."""
        return len(self.queues.get(key, ()))

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys, of the given ones, that hold nothing."""
        return [key for key in keys if key not in self.values and key not in self.queues]

    def get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of keys."""
        return [self.values.get(key, b"") for key in keys]

    def count(self) -> int:
        """How many keys have a value."""
        return len(self.values)

    def keys(self) -> list[str]:
        """The keys that have a value."""
        return list(self.values)


class Store:
    """The base of all stores.

    Example:
        >>> issubclass(dist.HashStore, dist.Store)
        True
    """

    _timeout = DEFAULT_TIMEOUT

    def _perform(self, operation: str, *args: Any) -> Any:
        """Call a method of the table while nobody else does."""
        raise NotImplementedError(f"{type(self).__name__} is no store by itself: use TCPStore, FileStore or HashStore")

    def _await(self, keys: Sequence[str], limit: float) -> None:
        """Wait until all keys hold something."""
        end = time.monotonic() + limit
        while missing := self._perform("missing", keys):
            if time.monotonic() >= end:
                raise DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {', '.join(missing)}")
            time.sleep(_BETWEEN_LOOKS)

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value under a key."""
        data = as_bytes(value)
        self._perform("set", key, data)

    def get(self, key: str) -> bytes:
        """The value of a key, once there is one."""
        self.wait([key])
        (value,) = self._perform("get", [key])
        return bytes(value)

    def add(self, key: str, amount: int) -> int:
        """Add to the number that a key holds, 0 at first; the sum."""
        result: int = self._perform("add", key, amount)
        return result

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthen the value of a key."""
        data = as_bytes(value)
        self._perform("append", key, data)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Replace a value that is as expected; what the key holds afterwards."""
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        held: bytes = self._perform("compare_set", key, expected, desired)
        return held

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return bool(self._perform("delete", key))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys hold something."""
        return not self._perform("missing", keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys hold something."""
        self._await(list(keys), seconds(timeout, self._timeout))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, once there are all."""
        self.wait(keys)
        found: list[bytes] = self._perform("get", keys)
        return found

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Store several values under their keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def num_keys(self) -> int:
        """How many keys hold something."""
        count: int = self._perform("count")
        return count

    def list_keys(self) -> list[str]:
        """The keys that hold something."""
        keys: list[str] = self._perform("keys")
        return keys

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of the queue of a key."""
        data = as_bytes(value)
        self._perform("push", key, data)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of the queue of a key."""
        if block:
            self.wait([key])
        value: bytes | None = self._perform("pop", key)
        if value is None:
            raise DistQueueEmptyError(f"queue {key!r} is empty")
        return value

    def queue_len(self, key: str) -> int:
        """How many values wait in the queue of a key."""
        count: int = self._perform("queue_length", key)
        return count

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait for keys by default."""
        self._timeout = timeout

    timeout: timedelta = same_as("_timeout", "How long to wait for keys by default.")

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` work."""
        return True

    def clone(self) -> Store:
        """A store over the same table, for another thread."""
        return self


class HashStore(Store):
    """A store for the threads of this process.

    Example:
        >>> store = dist.HashStore()
        >>> store.set("key", "value")
        >>> store.get("key"), store.add("count", 2)
        (b'value', 2)
    """

    def __init__(self) -> None:
        self._table = Table()
        self._changed = new_condition()

    def _perform(self, operation: str, *args: Any) -> Any:
        with self._changed:
            result = getattr(self._table, operation)(*args)
            self._changed.notify_all()
        return result

    def _await(self, keys: Sequence[str], limit: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: not self._table.missing(keys), limit):
                missing = ", ".join(self._table.missing(keys))
                raise DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {missing}")


def _of_a_part(method: Any) -> Any:
    """A method of stores for a part of one: the part's word stands before the key, or keys, of its first argument."""

    @functools.wraps(method)
    def call(self: PrefixStore, keys: Any, /, *args: Any, **kwargs: Any) -> Any:
        named = f"{self.prefix}/{keys}" if isinstance(keys, str) else [f"{self.prefix}/{key}" for key in keys]
        return getattr(self.underlying_store, method.__name__)(named, *args, **kwargs)

    return call


class PrefixStore(Store):
    """A part of another store: its keys begin with a word.

    Args:
        prefix (str): what keys begin with.
        store (Store): the store.

    Example:
        >>> store = dist.PrefixStore("job", dist.HashStore())
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix = prefix
        self.underlying_store = store

    set, get, add, append, compare_set, delete_key, queue_push, queue_pop, queue_len = map(
        _of_a_part,
        (Store.set, Store.get, Store.add, Store.append, Store.compare_set, Store.delete_key, Store.queue_push,
         Store.queue_pop, Store.queue_len),
    )  # fmt: skip
    check, wait, multi_get = map(_of_a_part, (Store.check, Store.wait, Store.multi_get))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()

    def list_keys(self) -> list[str]:
        start = f"{self.prefix}/"
        return [key[len(start) :] for key in self.underlying_store.list_keys() if key.startswith(start)]

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    timeout: timedelta = same_as("underlying_store.timeout")

    def clone(self) -> Store:
        return PrefixStore(self.prefix, self.underlying_store.clone())


_RECORD = struct.Struct("<BII")
_SET, _DELETE, _PUSH, _POP = range(4)


class _Log(Table):
    """A table that notes what changed, for the file, and follows what others noted."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def _note(self, kind: int, key: str, value: bytes = b"") -> None:
        name = key.encode()
        self.written.append(_RECORD.pack(kind, len(name), len(value)) + name + value)

    def set(self, key: str, value: bytes) -> None:
        super().set(key, value)
        self._note(_SET, key, value)

    def add(self, key: str, amount: int) -> int:
        number = super().add(key, amount)
        self._note(_SET, key, self.values[key])
        return number

    def append(self, key: str, value: bytes) -> None:
        super().append(key, value)
        self._note(_SET, key, self.values[key])

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        before = self.values.get(key)
        held = super().compare_set(key, expected, desired)
        if self.values.get(key) != before:
            self._note(_SET, key, held)
        return held

    def delete(self, key: str) -> bool:
        self._note(_DELETE, key)
        super().delete(key)
        return True  # as PyTorch's store in a file, which does not look whether the key was there

    def push(self, key: str, value: bytes) -> None:
        super().push(key, value)
        self._note(_PUSH, key, value)

    def pop(self, key: str) -> bytes | None:
        value = super().pop(key)
        if value is not None:
            self._note(_POP, key)
        return value

    def follow(self, data: bytes) -> int:
        """Do what the records in `data` say; the number of bytes of whole records."""
        position = 0
        while position + _RECORD.size <= len(data):
            kind, name_length, value_length = _RECORD.unpack_from(data, position)
            start = position + _RECORD.size
            end = start + name_length + value_length
            if end > len(data):
                break
            key = data[start : start + name_length].decode(errors="replace")
            value = data[start + name_length : end]
            match kind:
                case 0:
                    Table.set(self, key, value)
                case 1:
                    Table.delete(self, key)
                case 2:
                    Table.push(self, key, value)
                case 3:
                    Table.pop(self, key)
            position = end
        return position


class FileStore(Store):
    """A store in a file that all processes see: a list of changes, which each of them follows.

    Args:
        file_name (str): the file.
        world_size (int): the number of processes, if it is known. Default: `-1`.

    Example:
        >>> import tempfile
        >>> store = dist.FileStore(tempfile.mkdtemp() + "/store", 1)
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path = Path(file_name)
        self._world_size = world_size
        self._table = _Log()
        self._position = 0
        self._guard = new_condition()
        self._perform("add", _USERS, 1)

    @property
    def path(self) -> str:
        """The path of the file that holds the store."""
        return str(self._path)

    def _perform(self, operation: str, *args: Any) -> Any:
        with self._guard:
            try:
                descriptor = os.open(self._path, _FLAGS, 0o600)
                try:
                    _lock(descriptor)
                    try:
                        return self._look_and_write(descriptor, operation, *args)
                    finally:
                        _unlock(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise DistStoreError(f"the store in {self._path} cannot be used: {error}") from error

    def _look_and_write(self, descriptor: int, operation: str, *args: Any) -> Any:
        os.lseek(descriptor, self._position, os.SEEK_SET)
        self._position += self._table.follow(_rest(descriptor))
        self._table.written.clear()
        result = getattr(self._table, operation)(*args)
        data = b"".join(self._table.written)
        if data:
            try:
                self._write(descriptor, data)
            except BaseException:  # what is not in the file did not happen: read all of it again
                self._table, self._position = _Log(), 0
                raise
        return result

    def _write(self, descriptor: int, data: bytes) -> None:
        """Append records; if that fails, none of them is there."""
        begin = self._position
        os.ftruncate(descriptor, begin)  # a record that a killed process left half written
        os.lseek(descriptor, begin, os.SEEK_SET)
        try:
            while data:
                count = os.write(descriptor, data)
                self._position += count
                data = data[count:]
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, begin)
            raise

    def num_keys(self) -> int:
        return super().num_keys() - 1

    def list_keys(self) -> list[str]:
        return [key for key in super().list_keys() if key != _USERS]

    def close(self) -> None:
        """Leave; the last one of all processes takes the file away."""
        if self._world_size > 0 and self._path.exists() and self.add(_USERS, -1) == 0:
            self._path.unlink(missing_ok=True)
        self._world_size = -1

    def __del__(self, _at_the_end: Callable[[], bool] = sys.is_finalizing) -> None:  # modules may be gone by then
        if not _at_the_end() and hasattr(self, "_guard"):
            with contextlib.suppress(OSError, DistStoreError):  # the folder may be gone, or no file can be locked
                self.close()


_USERS = "&users"


_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOCKED_BYTE = 1 << 30
"""Windows locks bytes of a file, and then nobody else reads them: this one lies behind all records."""


def _lock(descriptor: int) -> None:
    """Keep other processes out of the file until it is closed."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    if msvcrt is None:
        raise DistStoreError("FileStore needs a system with file locks; use HashStore here")
    while True:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            return
        except OSError as error:  # it gives up after ten seconds
            if error.errno != errno.EDEADLOCK:
                raise


def _rest(descriptor: int) -> bytes:
    """What a file holds from its position on."""
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _unlock(descriptor: int) -> None:
    """Let others in. Closing the file does so too, but on Windows some time later, and elsewhere not if it fails."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    elif msvcrt is not None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
