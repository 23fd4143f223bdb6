"""Files that appear whole: written beside their target, forced to the disk, and put in its place in one step."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .direct import direct_writer

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

_SUFFIX = ".saving"


def _lock(descriptor: int) -> bool:
    """Mark a file as being written by a living process; False if another one holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _create(target: Path, mode: int | None) -> tuple[Path, Any]:
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_SUFFIX}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        if _lock(descriptor):
            try:
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(descriptor, mode)
                return path, os.fdopen(descriptor, "wb", buffering=0)
            except BaseException:
                os.close(descriptor)
                path.unlink()
                raise
        os.close(descriptor)  # somebody who cleans up was quicker, and removes it


def _remove_leftovers(target: Path) -> None:
    """Remove what saves to this target left behind when their process was killed."""
    for path in target.parent.glob(f".{glob_escaped(target.name)}.{'[0-9a-f]' * 16}{_SUFFIX}"):
        with contextlib.suppress(OSError):
            if fcntl is None:  # Windows removes no file that is open
                path.unlink()
                continue
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def glob_escaped(name: str) -> str:
    """`name` as a pattern that matches only itself."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):  # some network file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _status(path: Path) -> os.stat_result | None:
    """What is at a path; None: nothing. `Path.exists` says so, too, where that cannot be found out."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextlib.contextmanager
def replacing(path: Any, expected: int = 0) -> Iterator[Any]:
    """An unbuffered file to write to. When the block ends, it takes the place of `path`; if it fails, it vanishes.

    A reader, and whoever looks after a crash at any moment, sees the old content or the new, never a part. With the
    number of bytes that are `expected`, a large file can be written faster; it then has the method `write` only.
    """
    target = Path(os.path.realpath(path))  # a link stays, what it leads to is replaced
    folder = _status(target.parent)
    if folder is None or not stat.S_ISDIR(folder.st_mode):
        raise RuntimeError(f"Parent directory {Path(path).parent} does not exist.")
    mode = None
    status = _status(target)
    if status is not None:
        if not stat.S_ISREG(status.st_mode):  # a device or a pipe has no content to replace
            with open(target, "wb", buffering=0) as direct:
                yield direct
            return
        mode = stat.S_IMODE(status.st_mode)
    _remove_leftovers(target)
    temporary, file = _create(target, mode)
    try:
        with file:
            writer = direct_writer(file, expected)
            if writer is None:
                yield file
            else:
                try:
                    yield writer
                    writer.finish()
                finally:
                    writer.stop()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # where open files cannot be renamed; elsewhere the lock is kept until after
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)
