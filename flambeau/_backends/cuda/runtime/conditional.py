"""Nodes of a CUDA graph whose work is done only where a flag on the device is set, by CUDA's driver.

A kernel in front of the node reads the flag. What the node does is captured in a stream of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p
from struct import Struct
from typing import Any

from ...._codegen.cuda.elementwise import functions
from .driver_functions import DriverFunctions

_SET_DEFAULT, _CONDITIONAL, _IF, _REPLACE, _RELAXED = 1, 13, 0, 1, 2
_pack = Struct("=QQ").pack


class _Parameters(ctypes.Structure):
    """What describes a node: here one with a condition."""

    _fields_ = (
        ("kind", c_int), ("reserved", c_int * 3), ("handle", c_uint64), ("condition", c_int), ("count", c_uint),
        ("bodies", POINTER(c_void_p)), ("context", c_void_p), ("rest", c_char * 208),
    )  # fmt: skip


_SIGNATURES = {
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuStreamGetCaptureInfo_v2": (
        c_void_p, POINTER(c_int), POINTER(c_uint64), POINTER(c_void_p), POINTER(POINTER(c_void_p)), POINTER(c_size_t),
    ),
    "cuGraphConditionalHandleCreate": (POINTER(c_uint64), c_void_p, c_void_p, c_uint, c_uint),
    "cuGraphAddNode": (POINTER(c_void_p), c_void_p, POINTER(c_void_p), c_size_t, POINTER(_Parameters)),
    "cuStreamUpdateCaptureDependencies": (c_void_p, POINTER(c_void_p), c_size_t, c_uint),
    "cuStreamBeginCaptureToGraph": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_int),
}  # fmt: skip

_call = DriverFunctions(_SIGNATURES, "conditional nodes of graphs need CUDA 12.4")


def condition_source() -> str:
    """The kernel that lets the value of a condition be a flag's."""
    return f"""{functions()}
typedef __device_builtin__ unsigned long long cudaGraphConditionalHandle;
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int);
struct Arguments {{ u64 handle; const u8* flag; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{ cudaGraphSetConditional(a.handle, *a.flag != 0); }}
"""


def _captured(stream: int) -> tuple[Any, Any, int]:
    """The graph that a stream is captured into, and the nodes that what comes next has to wait for."""
    status, number, graph = c_int(), c_uint64(), c_void_p()
    before, count = POINTER(c_void_p)(), c_size_t()
    given = byref(status), byref(number), byref(graph), byref(before), byref(count)
    _call("cuStreamGetCaptureInfo_v2", stream, *given)
    return graph, before, count.value


def begin_body(launch: Callable[[int, int, bytes], None], stream: int, body: int, flag: int) -> None:
    """Let a stream that is captured have a node, whose work is what another stream, `body`, is given from now on."""
    graph, context, handle, node = _captured(stream)[0], c_void_p(), c_uint64(), c_void_p()
    _call("cuCtxGetCurrent", byref(context))
    _call("cuGraphConditionalHandleCreate", byref(handle), graph, context, 0, _SET_DEFAULT)
    launch(1, 1, _pack(handle.value, flag))
    _, before, count = _captured(stream)
    described = _Parameters(_CONDITIONAL, handle=handle.value, condition=_IF, count=1, context=context)
    _call("cuGraphAddNode", byref(node), graph, before, count, byref(described))
    _call("cuStreamUpdateCaptureDependencies", stream, byref(node), 1, _REPLACE)
    _call("cuStreamBeginCaptureToGraph", body, described.bodies[0], None, None, 0, _RELAXED)
