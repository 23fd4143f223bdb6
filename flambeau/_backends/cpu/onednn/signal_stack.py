"""A stack of its own for the handlers of signals.

Kernels of oneDNN's `sgemm` let the processor's stack pointer show into memory from the heap. A signal that arrives
meanwhile (Ctrl-C, a timer, a worker of a loader that ends) would be handled there: what the system puts aside for it
overwrites what lies in front of that memory, and the process ends sooner or later. Python asks the system to run its
handlers on another stack; a thread that calls the library needs to have one.
"""

from __future__ import annotations

import ctypes
import sys
import threading

_BYTES = 1 << 16
"""A handler of Python's takes little; the processor's registers, AMX's tiles among them, take some eleven thousand."""
_IS_OFF = 2


class _Description(ctypes.Structure):
    """Where a stack for signals lies: Linux's `stack_t`."""

    _fields_ = (("begin", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


class SignalStack:
    """Another stack for the handlers of signals in the thread that makes this, unless it has one: kept as long."""

    def __init__(self) -> None:
        self._memory: ctypes.Array[ctypes.c_char] | None = None
        if sys.platform != "linux" or has_signal_stack():
            return
        memory = ctypes.create_string_buffer(_BYTES)
        if not _change(_Description(ctypes.addressof(memory), 0, _BYTES)):
            self._memory = memory
            if threading.current_thread() is threading.main_thread():  # signals come until the process has ended
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))

    def __del__(self) -> None:
        if self._memory is not None and not sys.is_finalizing() and _known().begin == ctypes.addressof(self._memory):
            _change(_Description(None, _IS_OFF, 0))


def has_signal_stack() -> bool:
    """Whether the calling thread has another stack for the handlers of signals."""
    return not _known().flags & _IS_OFF


def _known() -> _Description:
    found = _Description(None, _IS_OFF, 0)
    ctypes.CDLL(None).sigaltstack(None, ctypes.byref(found))
    return found


def _change(wanted: _Description) -> int:
    status: int = ctypes.CDLL(None).sigaltstack(ctypes.byref(wanted), None)
    return status
