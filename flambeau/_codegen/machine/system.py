"""What generated code asks of the operating system: locks, conditions, threads and pages of memory.

The thread pool and the allocator are written once, in terms of the methods here. The module's target says which system
it is for, so that one machine can write code for all of them.

| | Linux, macOS | Windows |
|---|---|---|
| lock | `pthread_mutex_t` | slim reader/writer lock |
| condition | `pthread_cond_t` | condition variable |
| thread | `pthread_create`, signals blocked | `CreateThread` |
| memory | `mmap` | `VirtualAlloc` |
"""

from __future__ import annotations

import ctypes
import os

from ..build import Builder, Value
from ..ir import ir
from ..types import I8, I32, I64, POINTER


class Posix:
    """Linux and macOS: the POSIX functions of the C library."""

    fill_signals = 2
    """`SIG_SETMASK`."""
    new_memory = 0x22
    """`MAP_PRIVATE | MAP_ANONYMOUS`."""
    present_memory = 0x8022
    """Also `MAP_POPULATE`: small pages are all there at once. One by one, as they are touched, they take nearly
    twice as long."""
    huge_pages: int | None = 14
    """`MADV_HUGEPAGE`, where there are such pages to ask for."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def _call(self, name: str, *arguments: Value) -> Value:
        return self.b.call(name, I32, arguments)

    def _number(self, number: int) -> Value:
        return Value(self.b, ir.Constant(I32, number))

    @property
    def _null(self) -> Value:
        return self.b.constant(POINTER, 0)

    def new_lock(self, lock: Value) -> None:
        """Make a lock that nobody holds, whatever was there before."""
        self._call("pthread_mutex_init", lock, self._null)

    def take(self, lock: Value) -> None:
        """Wait for the lock, and take it."""
        self._call("pthread_mutex_lock", lock)

    def release(self, lock: Value) -> None:
        """Give the lock back to others."""
        self._call("pthread_mutex_unlock", lock)

    def new_condition(self, condition: Value) -> None:
        """Make a condition on which nobody waits."""
        self._call("pthread_cond_init", condition, self._null)

    def wait(self, condition: Value, lock: Value) -> None:
        """Release the lock, sleep until somebody wakes the condition's threads, and take the lock again."""
        self._call("pthread_cond_wait", condition, lock)

    def wake_one(self, condition: Value) -> None:
        """Wake a thread that waits."""
        self._call("pthread_cond_signal", condition)

    def wake_all(self, condition: Value) -> None:
        """Wake every thread that waits."""
        self._call("pthread_cond_broadcast", condition)

    def leave_processor(self) -> None:
        """Let another thread run for a while."""
        self._call("sched_yield")

    def block_signals(self) -> Value:
        """Let threads that start from now on get no signals: they stay with Python's own. The mask that was set."""
        everything, before = self.b.stack(I8, 256), self.b.stack(I8, 256)
        self._call("sigfillset", everything)
        self._call("pthread_sigmask", self._number(self.fill_signals), everything, before)
        return before

    def restore_signals(self, before: Value) -> None:
        """Set the mask that `block_signals` found."""
        self._call("pthread_sigmask", self._number(self.fill_signals), before, self._null)

    def start_thread(self, function: Value) -> Value:
        """Start a thread that runs a function of one pointer; whether it could be started."""
        handle = self.b.stack(I64, 1)
        started = self._call("pthread_create", handle, self._null, function, self._null) == 0
        with self.b.when(started):
            self._call("pthread_detach", self.b.load_raw(handle, I64))
        return started

    def map(self, size: Value, is_huge: Value) -> Value:
        """New memory, full of zeros, as a number; -1: there is none."""
        b = self.b
        flags = b.select(is_huge, self._number(self.new_memory), self._number(self.present_memory))
        readable_and_writable = self._number(3)
        arguments = [self._null, size, readable_and_writable, flags, self._number(-1), b.integer(0)]
        return Value(b, b.ir.ptrtoint(b.call("mmap", POINTER, arguments).ir, I64))

    def ask_for_huge_pages(self, start: Value, size: Value) -> None:
        """Let memory consist of huge pages, where the system has them."""
        if self.huge_pages is not None:
            self._call("madvise", start, size, self._number(self.huge_pages))

    def unmap(self, start: Value, size: Value) -> None:
        """Give memory back to the system."""
        self._call("munmap", start, size)


class MacOS(Posix):
    """macOS counts the constants otherwise, and chooses the size of pages itself."""

    fill_signals = 3
    new_memory = present_memory = 0x1002
    huge_pages = None


class Windows(Posix):
    """Windows, by the functions of kernel32.dll."""

    def new_lock(self, lock: Value) -> None:
        """Make a lock that nobody holds, whatever was there before."""
        self._call("InitializeSRWLock", lock)

    def take(self, lock: Value) -> None:
        """Wait for the lock, and take it."""
        self._call("AcquireSRWLockExclusive", lock)

    def release(self, lock: Value) -> None:
        """Give the lock back to others."""
        self._call("ReleaseSRWLockExclusive", lock)

    def new_condition(self, condition: Value) -> None:
        """Make a condition on which nobody waits."""
        self._call("InitializeConditionVariable", condition)

    def wait(self, condition: Value, lock: Value) -> None:
        """Release the lock, sleep until somebody wakes the condition's threads, and take the lock again."""
        for_ever, exclusive = self._number(-1), self._number(0)
        self._call("SleepConditionVariableSRW", condition, lock, for_ever, exclusive)

    def wake_one(self, condition: Value) -> None:
        """Wake a thread that waits."""
        self._call("WakeConditionVariable", condition)

    def wake_all(self, condition: Value) -> None:
        """Wake every thread that waits."""
        self._call("WakeAllConditionVariable", condition)

    def leave_processor(self) -> None:
        """Let another thread run for a while."""
        self._call("SwitchToThread")

    def block_signals(self) -> Value:
        """Windows sends no signals to threads."""
        return self._null

    def restore_signals(self, before: Value) -> None:
        """Windows sends no signals to threads."""

    def start_thread(self, function: Value) -> Value:
        """Start a thread that runs a function of one pointer; whether it could be started."""
        b = self.b
        arguments = [self._null, b.integer(0), function, self._null, self._number(0), self._null]
        handle = b.call("CreateThread", POINTER, arguments)
        started = handle != self._null
        with b.when(started):
            self._call("CloseHandle", handle)  # the thread runs on
        return started

    def map(self, size: Value, is_huge: Value) -> Value:
        """New memory, full of zeros, as a number; -1: there is none."""
        b = self.b
        reserve_and_commit, readable_and_writable = self._number(0x3000), self._number(4)
        found = b.call("VirtualAlloc", POINTER, [self._null, size, reserve_and_commit, readable_and_writable])
        return b.select(found == self._null, b.integer(-1), Value(b, b.ir.ptrtoint(found.ir, I64)))

    def ask_for_huge_pages(self, start: Value, size: Value) -> None:
        """Large pages need a privilege that users rarely have."""

    def unmap(self, start: Value, size: Value) -> None:
        """Give memory back: all that one call has reserved."""
        self._call("VirtualFree", start, self.b.integer(0), self._number(0x8000))


def system(b: Builder) -> Posix:
    """The operating system that a builder's module is for."""
    triple = b.module.triple
    if "windows" in triple:
        return Windows(b)
    return MacOS(b) if "apple" in triple else Posix(b)


def own_symbols() -> dict[str, int]:
    """Addresses of what LLVM refers to in code for this system, and the linker does not find in the process.

    Objects for Windows name `_fltused` where they compute with floats, and call `__chkstk` where a function has more
    than a page of local variables.
    """
    if os.name != "nt":
        return {}
    check = ctypes.cast(ctypes.CDLL("ntdll")["__chkstk"], ctypes.c_void_p).value
    assert check is not None
    return {"__chkstk": check, "_fltused": check}
