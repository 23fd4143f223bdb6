"""cuDNN by ctypes: convolutions and their gradients. The library is found where its package puts it."""

from __future__ import annotations

import ctypes
import importlib.util
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from .driver import driver

TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
_FLOAT, _DOUBLE = 0, 1
_BY_ROWS, _CHANNELS_LAST = 0, 1
_CROSS_CORRELATION = 1
_DEFAULT_MATH, _FULL_MATH = 0, 3
_MOST_WORKSPACE = 1 << 30
_MOST_WAYS = 10

FORWARD, OF_INPUT, OF_WEIGHT = "Forward", "BackwardData", "BackwardFilter"
"""The three products of a convolution."""


class _Way(ctypes.Structure):
    """A way to compute a convolution, as cuDNN proposes it."""

    _fields_ = (
        ("number", c_int), ("status", c_int), ("time", c_float), ("memory", c_size_t), ("determinism", c_int),
        ("math", c_int), ("reserved", c_int * 3),
    )  # fmt: skip


@cache
def library() -> Any:
    """The library; None: it is not there."""
    names = ["libcudnn.so.9", "libcudnn.so"]
    found = importlib.util.find_spec("nvidia.cudnn") if importlib.util.find_spec("nvidia") is not None else None
    for place in [] if found is None else found.submodule_search_locations or []:
        names[:0] = [str(each) for each in sorted((Path(place) / "lib").glob("libcudnn.so.*"))]
    for name in names:
        try:
            loaded = ctypes.CDLL(name)
        except OSError:
            continue
        for function in ("Create", "SetStream", *_DESCRIPTORS, *[f"Convolution{each}" for each in _ORDERS]):
            getattr(loaded, f"cudnn{function}").restype = c_int
        return loaded
    return None


_DESCRIPTORS = (
    "CreateTensorDescriptor", "SetTensorNdDescriptor", "CreateFilterDescriptor", "SetFilterNdDescriptor",
    "CreateConvolutionDescriptor", "SetConvolutionNdDescriptor", "SetConvolutionGroupCount", "SetConvolutionMathType",
)  # fmt: skip
_ORDERS = {FORWARD: ("x", "w", "y"), OF_INPUT: ("w", "y", "x"), OF_WEIGHT: ("x", "y", "w")}
"""For each product the operands and then the result: input, weight, output."""


class Refused(Exception):
    """cuDNN does not do it."""


def _check(status: int) -> None:
    if status:
        raise Refused(f"cuDNN: status {status}")


@cache
def _handle() -> c_void_p:
    handle = c_void_p()
    _check(library().cudnnCreate(byref(handle)))
    return handle


def _numbers(values: Any) -> Any:
    return (c_int * len(values))(*values)


class Convolution:
    """One of the three products for arrays of given shapes and layouts: descriptors, and the way that was chosen."""

    def __init__(
        self, product: str, dtype: str, input: Any, weight: tuple[tuple[int, ...], bool], output: Any, stride: Any,
        padding: Any, dilation: Any, groups: int, shortened: bool,
    ) -> None:  # fmt: skip
        api = library()
        self.product = product
        kind = TYPES[dtype]
        self._descriptors = {
            "x": self._tensor(kind, *input),
            "w": self._filter(kind, *weight),
            "y": self._tensor(kind, *output),
        }
        self._rule = c_void_p()
        _check(api.cudnnCreateConvolutionDescriptor(byref(self._rule)))
        computed = _DOUBLE if dtype == "float64" else _FLOAT
        rank = len(stride)
        _check(
            api.cudnnSetConvolutionNdDescriptor(
                self._rule, rank, _numbers(padding), _numbers(stride), _numbers(dilation), _CROSS_CORRELATION, computed
            )
        )
        _check(api.cudnnSetConvolutionGroupCount(self._rule, groups))
        math = _FULL_MATH if dtype == "float32" and not shortened else _DEFAULT_MATH
        _check(api.cudnnSetConvolutionMathType(self._rule, math))
        number = c_double if computed == _DOUBLE else c_float
        self._one, self._nothing = number(1), number(0)
        self._way, self._workspace = self._chosen()
        self._run = getattr(api, f"cudnnConvolution{product}")

    @staticmethod
    def _tensor(kind: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> c_void_p:
        found = c_void_p()
        _check(library().cudnnCreateTensorDescriptor(byref(found)))
        _check(library().cudnnSetTensorNdDescriptor(found, kind, len(shape), _numbers(shape), _numbers(strides)))
        return found

    @staticmethod
    def _filter(kind: int, shape: tuple[int, ...], last: bool) -> c_void_p:
        found = c_void_p()
        _check(library().cudnnCreateFilterDescriptor(byref(found)))
        layout = _CHANNELS_LAST if last else _BY_ROWS
        _check(library().cudnnSetFilterNdDescriptor(found, kind, layout, len(shape), _numbers(shape)))
        return found

    def _given(self) -> list[Any]:
        first, second, result = (self._descriptors[each] for each in _ORDERS[self.product])
        return [first, second, self._rule, result]

    def _chosen(self) -> tuple[int, int]:
        """The way that is expected to be the quickest, and the memory that it needs."""
        api = library()
        ways, count = (_Way * _MOST_WAYS)(), c_int()
        choose = getattr(api, f"cudnnGetConvolution{self.product}Algorithm_v7")
        choose.restype = c_int
        _check(choose(_handle(), *self._given(), _MOST_WAYS, byref(count), ways))
        measure = getattr(api, f"cudnnGetConvolution{self.product}WorkspaceSize")
        measure.restype = c_int
        for way in ways[: count.value]:
            size = c_size_t()
            if way.status or way.memory > _MOST_WORKSPACE:
                continue
            if not measure(_handle(), *self._given(), c_int(way.number), byref(size)) and size.value <= _MOST_WORKSPACE:
                return way.number, size.value
        raise Refused("cuDNN: no way to compute this convolution")

    def __call__(self, pointers: dict[str, int]) -> None:
        """Compute: `pointers` are the addresses of "x", "w" and "y"."""
        _check(library().cudnnSetStream(_handle(), c_void_p(driver().stream())))
        memory = driver().allocate(self._workspace) if self._workspace else None
        first, second, result = _ORDERS[self.product]
        given = self._descriptors
        _check(
            self._run(
                _handle(), byref(self._one), given[first], c_void_p(pointers[first]), given[second],
                c_void_p(pointers[second]), self._rule, c_int(self._way), c_void_p(0 if memory is None else memory.ptr),
                c_size_t(self._workspace), byref(self._nothing), given[result], c_void_p(pointers[result]),
            )
        )  # fmt: skip


__all__ = ["FORWARD", "OF_INPUT", "OF_WEIGHT", "TYPES", "Convolution", "Refused", "library"]
