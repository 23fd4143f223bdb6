"""Machine code on disk: what was compiled once is loaded the next time.

A file is named by a digest of everything that its content depends on: the processor, the versions of Flambeau, LLVM,
NumPy and Python, the source of this package, and what was asked for. It begins with a checksum of the rest, and is
written to a temporary name first, so that concurrent processes and crashes leave whole files only. The folder belongs
to the user alone; code in a folder that others can write to is not run.

`FLAMBEAU_CACHE_DIR` says where it is; `FLAMBEAU_CACHE=0` switches it off.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

_CHECKSUM = 32

_SETTLED = 2_000_000_000
"""Nanoseconds. What was written less long ago may be written to again, and the clock of files not have moved."""


def folder() -> Path | None:
    """Where machine code is kept; None: nowhere."""
    if os.environ.get("FLAMBEAU_CACHE") == "0":
        return None
    if given := os.environ.get("FLAMBEAU_CACHE_DIR"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "flambeau"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flambeau"


def digest(parts: Iterable[str]) -> str:
    """A name for what `parts` describe."""
    summary = hashlib.sha256()
    for part in parts:
        summary.update(part.encode())
        summary.update(b"\0")
    return summary.hexdigest()


def source_digest() -> str:
    """A digest of the source of this package: other source may write other code.

    The files are read where nobody has read them yet as they are now: same places, sizes, and times of all changes.
    """
    paths = sorted(Path(__file__).parents[1].rglob("*.py"))
    states = [_state_of(path) for path in paths]
    known = digest(["source", *[f"{path} {state}" for path, state in zip(paths, states, strict=True)]])
    if (found := load(known)) is not None:
        return found.decode()
    summary = hashlib.sha256()
    for path in paths:
        summary.update(path.name.encode())
        summary.update(path.read_bytes())
    if time.time_ns() - max([state[-1] for state in states]) > _SETTLED:
        store(known, summary.hexdigest().encode())
    return summary.hexdigest()


def _state_of(path: Path) -> tuple[int, ...]:
    """What a file has others of when somebody has written to it; nobody can set the last of the times back."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def load(name: str) -> bytes | None:
    """The machine code kept under `name`, if it is there, whole, and nobody else's."""
    place = folder()
    if place is None:
        return None
    path = place / f"{name}.o"
    try:
        with path.open("rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    checksum, code = content[:_CHECKSUM], content[_CHECKSUM:]
    return code if hashlib.sha256(code).digest() == checksum else None


def store(name: str, code: bytes) -> None:
    """Keep machine code under `name`. A disk that is full or read-only is no error: it will be compiled again."""
    place = folder()
    if place is None:
        return
    import tempfile  # costs two milliseconds, which only those pay who have something to keep

    temporary = None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(place.stat()):
            return
        descriptor, temporary = tempfile.mkstemp(dir=place, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(temporary, place / f"{name}.o")
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def sizes() -> list[int]:
    """The size of each file of the cache, in bytes."""
    place = folder()
    if place is None or not place.is_dir():
        return []
    return [path.stat().st_size for path in place.glob("*.o")]


def clear() -> int:
    """Remove every file of the cache; their number."""
    place = folder()
    if place is None or not place.is_dir():
        return 0
    removed = 0
    for path in place.iterdir():
        if path.suffix in (".o", ".tmp"):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _is_ours(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
