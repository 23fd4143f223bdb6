"""Machine code on disk: what was compiled once is loaded the next time.

A file is named by a digest of everything that its content depends on: the processor, the versions of Flambeau, LLVM,
NumPy and Python, the source of this package, and what was asked for. It begins with a checksum of its name and the
rest, so that a file under another file's name is not read. It is written to a temporary name first: concurrent
processes and crashes leave whole files only.

The cache never fails. A file is read if it is a regular file of the user's, in a folder of the user's, and nobody else
may write to either; anything else is as if it were not there. Content that its reader refuses is made anew
(`made_once`). There is no key beside the files: whoever could write a wrong file with a right checksum is the user, who
could read the key as well.

`FLAMBEAU_CACHE_DIR` says where it is; `FLAMBEAU_CACHE=0` switches it off.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # both take a few milliseconds, and an import of the package asks for neither
    from pathlib import Path

Used = TypeVar("Used")

_CHECKSUM = 32
_LARGEST = 1 << 28
"""Bytes of a file. A larger one is none that was written here, and to read it would take long."""

_SETTLED = 2_000_000_000
"""Nanoseconds. What was written less long ago may be written to again, and the clock of files not have moved."""


def folder() -> str | None:
    """Where machine code is kept; None: nowhere."""
    if os.environ.get("FLAMBEAU_CACHE") == "0":
        return None
    if given := os.environ.get("FLAMBEAU_CACHE_DIR"):
        return given
    home = os.path.expanduser("~")
    if home == "~":  # a user without a home
        return None
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "flambeau")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "flambeau")


def digest(parts: Iterable[str]) -> str:
    """A name for what `parts` describe."""
    summary = _sha256()
    for part in parts:
        summary.update(part.encode())
        summary.update(b"\0")
    return str(summary.hexdigest())


def source_digest() -> str:
    """A digest of the source of this package: other source may write other code.

    The files are read where nobody has read them yet as they are now: same places, sizes, and times of all changes.
    """
    from pathlib import Path

    paths = sorted(Path(__file__).parents[1].rglob("*.py"))
    states = [_state_of(path) for path in paths]
    known = digest(["source", *[f"{path} {state}" for path, state in zip(paths, states, strict=True)]])
    if (found := load(known)) is not None:
        return found.hex()
    summary = _sha256()
    for path in paths:
        summary.update(path.name.encode())
        summary.update(path.read_bytes())
    if time.time_ns() - max([state[-1] for state in states]) > _SETTLED:
        store(known, summary.digest())
    return str(summary.hexdigest())


def _state_of(path: Path) -> tuple[int, ...]:
    """What a file has others of when somebody has written to it; nobody can set the last of the times back."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def made_once(name: str, make: Callable[[], bytes], use: Callable[[bytes], Used]) -> Used:
    """What `use` gives for the content under `name`; what is not there, or makes `use` fail, is made anew."""
    if (found := load(name)) is not None:
        with contextlib.suppress(Exception):
            return use(found)
    content = make()
    store(name, content)
    return use(content)


def load(name: str) -> bytes | None:
    """The machine code kept under `name`, if it is there, whole, and nobody else's."""
    place = folder()
    if place is None:
        return None
    path = f"{place}{os.sep}{name}.o"
    try:
        if not (_is_ours(os.stat(place)) and _is_readable(os.stat(path))):  # before it is opened: it may be a device
            return None
        # It may have become a pipe since, which nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            if not _is_readable(os.fstat(descriptor)):
                return None
            content = file.read(_LARGEST)
    except (OSError, ValueError):
        return None
    code = content[_CHECKSUM:]
    return code if _checksum(name, code) == content[:_CHECKSUM] else None


def _checksum(name: str, code: bytes) -> bytes:
    found: bytes = _sha256(name.encode() + b"\0" + code).digest()
    return found


def _sha256(content: bytes = b"") -> Any:
    import hashlib

    return hashlib.sha256(content)


def store(name: str, code: bytes) -> None:
    """Keep machine code under `name`. A disk that is full or read-only is no error: it will be compiled again."""
    place = folder()
    if place is None or len(code) + _CHECKSUM > _LARGEST:
        return
    import tempfile  # costs two milliseconds, which only those pay who have something to keep

    temporary = None
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        if not _is_ours(os.stat(place)):
            return
        descriptor, temporary = tempfile.mkstemp(dir=place, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_checksum(name, code) + code)
        os.replace(temporary, f"{place}{os.sep}{name}.o")
    except (OSError, ValueError):
        if temporary is not None:
            _remove(temporary)


def sizes() -> list[int]:
    """The size of each file of the cache, in bytes."""
    found = []
    for path in _files(".o"):
        with contextlib.suppress(OSError):  # another process may have removed it
            found.append(os.stat(path).st_size)
    return found


def clear() -> int:
    """Remove every file of the cache; their number."""
    return sum([_remove(path) for path in _files(".o", ".tmp")])


def _files(*suffixes: str) -> list[str]:
    place = folder()
    try:
        with os.scandir(place) if place is not None else contextlib.nullcontext(()) as entries:
            return [each.path for each in entries if each.name.endswith(suffixes)]
    except OSError:
        return []


def _remove(path: str) -> bool:
    """Whether the file is gone by this call."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _is_readable(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST and _is_ours(status)


def _is_ours(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
