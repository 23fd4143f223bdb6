"""Windows' ways of sharing memory and of locking files, with its functions stood in by Linux's.

`tests/test_other_platforms.py` runs the real ones under Wine, where there is one.
"""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import types
import urllib.request
from multiprocessing import reduction
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau._core import shared_memory
from flambeau.distributed import FileStore, stores
from flambeau.distributed._launch import inheritance, workers
from flambeau.multiprocessing import reductions

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="stands in by Linux's functions")


class Kernel32:
    """Section objects are files in memory, handles their descriptors."""

    def __init__(self) -> None:
        self.linux = shared_memory._Posix()
        self.open: set[int] = set()
        self.mapped: set[int] = set()
        self.sizes: dict[int, int] = {}
        self.maps = True

    def CreateFileMappingW(self, file: Any, security: Any, protection: int, high: int, low: int, name: Any) -> int:
        if high:
            return 0  # there is no so much
        handle = os.memfd_create("section")
        os.truncate(handle, low)
        self.open.add(handle)
        return handle

    def MapViewOfFile(self, handle: int, access: int, high: int, low: int, nbytes: int) -> int | None:
        if not self.maps:
            return None
        address = self.linux.map(handle, nbytes)
        self.mapped.add(address)
        self.sizes[address] = nbytes
        return address

    def UnmapViewOfFile(self, address: int) -> None:
        self.mapped.remove(address)
        self.linux.unmap(address, self.sizes[address])

    def CloseHandle(self, handle: int) -> None:
        self.open.remove(handle)
        os.close(handle)


class Handle:
    """What `multiprocessing.reduction.DupHandle` is: another handle of the same object, for whoever unpickles it."""

    kernel32: Kernel32

    def __init__(self, handle: int, access: int) -> None:
        self._handle = os.dup(handle)

    def detach(self) -> int:
        self.kernel32.open.add(self._handle)
        return self._handle


@pytest.fixture
def kernel32(monkeypatch: pytest.MonkeyPatch) -> Kernel32:
    stood_in = Kernel32()
    system: Any = object.__new__(shared_memory._Windows)
    system._library, system.close = stood_in, stood_in.CloseHandle
    monkeypatch.setattr(shared_memory, "_system", lambda: system)
    monkeypatch.setattr(Handle, "kernel32", stood_in, raising=False)
    monkeypatch.setattr(reduction, "DupHandle", Handle, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    return stood_in


def test_memory_is_shared_by_handles(kernel32: Kernel32) -> None:
    tensor = flambeau.arange(6.0)
    window = tensor[2:]
    assert tensor.share_memory_() is tensor
    assert tensor.is_shared()
    assert window.is_shared()
    rebuild, arguments = reductions.reduce_storage(tensor.untyped_storage())[:2]
    assert rebuild is reductions.rebuild_storage_handle
    here = rebuild(*arguments)
    assert here.data_ptr() == tensor.data_ptr()  # it came back to the process that sent it
    cls, handle, _, nbytes = reductions.reduce_storage(tensor.untyped_storage())[1]
    elsewhere = reductions.rebuild_storage_handle(cls, handle, (os.getpid() + 1, 0), nbytes)  # as in another process
    assert elsewhere.data_ptr() != tensor.data_ptr()
    tensor[5] = 50.0
    assert flambeau.tensor([], dtype=tensor.dtype).set_(elsewhere).tolist() == [0, 1, 2, 3, 4, 50]
    assert window.tolist() == [2, 3, 4, 50]
    assert len(kernel32.mapped) == 2
    del tensor, window, here, elsewhere, arguments, handle
    assert not kernel32.open
    assert not kernel32.mapped


def test_memory_that_is_not_there(kernel32: Kernel32) -> None:
    with pytest.raises(RuntimeError, match="unable to make 8589934592 bytes of shared memory: Windows' error"):
        flambeau.UntypedStorage._new_shared(1 << 33)
    kernel32.open.add(handle := os.memfd_create("section"))
    kernel32.maps = False
    with pytest.raises(RuntimeError, match="unable to map 8 bytes of shared memory"):
        shared_memory.from_handle(handle, (0, 0), 8)
    assert not kernel32.open


class Msvcrt:
    """Locks one byte where the file stands, as the C library of Windows does."""

    LK_LOCK, LK_UNLCK = 1, 0

    def __init__(self) -> None:
        self.gives_up = 0

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        import fcntl

        assert os.lseek(descriptor, 0, os.SEEK_CUR) > 1 << 20, "behind what others read"
        if mode and self.gives_up:
            self.gives_up -= 1
            raise OSError(errno.EDEADLOCK, "Resource deadlock avoided")
        assert count == 1
        fcntl.flock(descriptor, fcntl.LOCK_EX if mode else fcntl.LOCK_UN)  # which stays when a copy of it is closed


def _count(path: str, times: int) -> None:
    store = FileStore(path, 2)
    for _ in range(times):
        store.add("count", 1)


def test_a_store_in_a_file_locks_as_windows_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "fcntl", None)
    monkeypatch.setattr(stores, "msvcrt", Msvcrt())
    stores.msvcrt.gives_up = 2
    folder = tmp_path / "with spaces, \u00fcml\u00e4ute and \u6f22\u5b57"
    folder.mkdir()
    path = str(folder / "store")
    store = FileStore(path, 2)
    store.set("lines", b"one\r\ntwo\n")
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_count, args=(path, 100)) for _ in range(2)]
    for each in others:
        each.start()
    _count(path, 100)
    for each in others:
        each.join()
    assert store.add("count", 0) == 300
    assert store.get("lines") == b"one\r\ntwo\n"


def test_a_store_in_a_file_where_no_file_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "fcntl", None)
    monkeypatch.setattr(stores, "msvcrt", None)
    with pytest.raises(RuntimeError, match="needs a system with file locks"):
        FileStore(str(tmp_path / "store"), 1)


def test_the_file_that_processes_meet_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def path_of(url: str) -> str:
        seen.append(url)
        return str(tmp_path / "store")

    monkeypatch.setattr(urllib.request, "url2pathname", path_of)
    monkeypatch.setattr(sys, "platform", "win32")
    store, rank, size = next(flambeau.distributed.rendezvous("file:///C:/a%20b/store?rank=0&world_size=1"))
    assert seen == ["/C:/a%20b/store"]
    assert (store.path, rank, size) == (str(tmp_path / "store"), 0, 1)


def test_what_a_launcher_asks_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One handle is inherited; a process is ended with all that it has started."""
    inheritable: list[tuple[int, bool]] = []
    functions = types.SimpleNamespace(get_osfhandle=lambda descriptor: descriptor + 1000,
                                      open_osfhandle=lambda handle, flags: handle - 1000)  # fmt: skip
    monkeypatch.setitem(sys.modules, "msvcrt", functions)
    monkeypatch.setattr(os, "set_handle_inheritable", lambda *given: inheritable.append(given), raising=False)
    monkeypatch.setattr(subprocess, "STARTUPINFO", types.SimpleNamespace, raising=False)
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 512, raising=False)
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **options: ran.append(command))
    monkeypatch.setattr(sys, "platform", "win32")
    arguments = inheritance.apart(7)
    assert arguments["creationflags"] == 512
    assert arguments["startupinfo"].lpAttributeList == {"handle_list": [1007]}
    assert inheritance.inherited(inheritance.name_for_children(7)) == 7
    assert inheritable == [(1007, True), (1007, False)]
    killed: list[int] = []
    process: Any = types.SimpleNamespace(pid=12, kill=lambda: killed.append(12))
    workers._signal(process, signal.SIGTERM)
    assert ran == [["taskkill", "/F", "/T", "/PID", "12"]]
    assert killed == [12]


def test_the_numbers_of_windows() -> None:
    assert shared_memory.ALL_ACCESS == 0xF001F
    assert ctypes.sizeof(ctypes.c_void_p) == 8
