"""cuBLASLt by ctypes: a product of matrices with what is added to it, in one kernel, by plans that are kept."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_int8, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.machine.device_calls import BETA, device_product
from ..arrays.array import DeviceArray
from ..memory.workspace import scratch
from ..runtime.any_gpu import common_gpu
from ..runtime.compile_queue import COMPILE_QUEUE
from ..runtime.devices import PlanOfDevice
from ..runtime.disk_cache import load, name_for, store
from ..runtime.driver import driver
from ..runtime.synchronization import HERE

TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
"""What CUDA calls the types of elements."""
_WIDE_TYPES = {"float64": (1, np.float64), "complex64": (4, np.complex64), "complex128": (5, np.complex128)}
"""Likewise, with NumPy's: factors of such a product are of the same type, of others of float32."""
_HALVES = frozenset(("float16", "bfloat16"))
EIGHT_BITS = {"float8_e4m3fn": 28, "float8_e5m2": 29}
"""What CUDA calls types that operands alone have."""
_SINGLE, _DOUBLE, _SHORTENED = 68, 70, 77
_PACK = 8
"""So many 16-bit floats the library's quick kernels read at a time."""
_MULTIPROCESSORS = 15
"""Of an operation: for how many the library chooses a way."""
_ALIGNMENTS = range(5, 9)
"""Of what is wished: the least alignments of left, right and results."""
_TURN_A, _TURN_B, _EPILOGUE, _BIAS = 3, 4, 7, 8
_SCALE_A, _SCALE_B, _QUICK_SUMS = 17, 18, 25
_WITH_BIAS = 4
_MOST_WORKSPACE, _WAYS_TO_JOIN = 1, 3
_COUNT, _APART = 5, 6
"""Of a layout: how many matrices there are, and how far they are apart."""
_MOST_WAYS = 8
_NOMINAL_ROWS = 2048
"""For so many rows the way is chosen that is to do for any number of them."""
_WORKSPACE = 32 << 20


class _Way(ctypes.Structure):
    """A way to compute a product, as the library proposes it."""

    _fields_ = (
        ("algorithm", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int), ("waves", c_float),
        ("reserved", c_int * 4),
    )  # fmt: skip


class Matrix(NamedTuple):
    """How an operand lies in memory: whether it is to be turned, and how far its columns are apart.

    The library counts columns first.
    """

    turned: bool
    step: int


class Batch(NamedTuple):
    """Several products: how many, and how far their matrices are apart, in elements."""

    products: int
    left: int
    right: int
    result: int


class Refused(Exception):
    """cuBLASLt does not do it."""


class Failed(RuntimeError):
    """What a call of the library has returned."""

    def __str__(self) -> str:
        return f"CUDA error: a product of matrices by cuBLASLt gave status {self.args[0]}"


def _check(status: int) -> None:
    if status:
        raise Refused(f"cuBLASLt: status {status}")


@cache
def _library() -> Any:
    for name in ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"):
        try:
            found = ctypes.CDLL(name)  # the driver's library has loaded it
        except OSError:
            continue
        pointer = c_void_p
        found.cublasLtMatmulDescSetAttribute.argtypes = [pointer, c_int, pointer, c_size_t]
        found.cublasLtMatrixLayoutCreate.argtypes = [pointer, c_int, c_uint64, c_uint64, c_int64]
        return found
    return None


def is_there() -> bool:
    """Whether the library can be used."""
    return _library() is not None


@cache
def _version() -> int:
    _library().cublasLtGetVersion.restype = c_size_t
    found: int = _library().cublasLtGetVersion()
    return found


@cache
def _handle(ordinal: int) -> c_void_p:
    """The library's handle for a device."""
    handle = c_void_p()
    _check(_library().cublasLtCreate(byref(handle)))
    return handle


_is_awake = False


def _wake() -> None:
    """Let the library get ready while Python goes ahead: it takes a tenth of a second when it is first asked."""
    global _is_awake
    if not _is_awake:
        _is_awake = True  # before the other thread plans a product, too
        COMPILE_QUEUE.compiled(_ask)


def _ask() -> None:
    matrix = Matrix(False, 4)
    product = Product("float32", 4, 4, 4, matrix, matrix, False, False)
    product._proposed(product._b, product._c, _WORKSPACE)


def _is_packed(rows: int, inner: int, columns: int, left: Matrix, right: Matrix, batch: Batch | None) -> bool:
    """Whether 16-bit floats are multiplied by kernels that all have one order of sums, if none divides them."""
    apart = (batch.left | batch.right | batch.result) if batch else 0
    return rows > 1 < columns and not (inner | columns | left.step | right.step | apart) % _PACK


class Product(PlanOfDevice):
    """`alpha * left @ right + beta * result`, or plus a row, for matrices of one shape and layout."""

    def __init__(
        self, dtype: str, rows: int, inner: int, columns: int, left: Matrix, right: Matrix, biased: bool,
        shortened: bool, factors: tuple[str, str] | None = None, quick_sums: bool = False, any_rows: bool = False,
        undivided: bool = False, batch: Batch | None = None, step: int | None = None, alignment: int = 256,
        own_gpu: bool = False,
    ) -> None:  # fmt: skip
        """`factors`: the types of left and right where these have 8 bits; `quick_sums`: in fewer bits than 32.

        `any_rows`: by the way for products with any number of rows, which does not divide sums. `undivided`: by one of
        `ways`, none of which divides sums. `batch`: so many products of matrices that lie apart. `step`: how far the
        rows of the result are apart. `alignment`: addresses are multiples of it. `own_gpu`: by ways for the GPU at
        hand, where the caller sees to it that others give the same bits.
        """
        api = _library()
        if api is None:
            raise Refused("cuBLASLt is not there")
        kind, factor_type = _WIDE_TYPES.get(dtype) or (TYPES[dtype], np.float32)
        self._alignment = alignment
        self._target, self._divides = 0, True
        """For how many multiprocessors ways are chosen, 0 for those of the GPU; whether sums may be divided."""
        if not own_gpu and (gpu := common_gpu()) is not None:
            # Kernels for tensor cores are chosen by more than that. But those that divide no sum add up in one order.
            if dtype not in _HALVES and factors is None and not shortened:
                self._target = gpu.fewest
            elif any_rows or _is_packed(rows, inner, columns, left, right, batch):
                self._divides = False
            else:
                raise Refused("cuBLASLt: this product's order of sums depends on the GPU")
        of_left, of_right = (kind, kind) if factors is None else (EIGHT_BITS[each] for each in factors)
        self._operation = c_void_p()
        way = _DOUBLE if dtype in ("float64", "complex128") else _SINGLE
        if shortened and dtype in ("float32", "complex64"):
            way = _SHORTENED
        factor_kind = kind if dtype in _WIDE_TYPES else TYPES["float32"]
        _check(api.cublasLtMatmulDescCreate(byref(self._operation), way, factor_kind))
        self._set(_TURN_A, c_int32(right.turned))
        self._set(_TURN_B, c_int32(left.turned))
        if biased:
            self._set(_EPILOGUE, c_uint32(_WITH_BIAS))
        if factors is not None:
            self._set(_QUICK_SUMS, c_int8(quick_sums))
        shape_a = (inner, columns) if right.turned else (columns, inner)
        shape_b = (rows, inner) if left.turned else (inner, rows)
        self._a = self._layout(of_right, *shape_a, right.step)
        self._b = self._layout(of_left, *shape_b, left.step)
        self._c = self._layout(kind, columns, rows, step or columns)
        if batch is not None:
            self._repeat(self._a, batch.products, batch.right)
            self._repeat(self._b, batch.products, batch.left)
            self._repeat(self._c, batch.products, batch.result)
        self.ways: list[Any] = []
        if any_rows:
            of_rows = self._layout(of_left, inner, _NOMINAL_ROWS, left.step)
            nominal = self._layout(kind, columns, _NOMINAL_ROWS, columns)
            self._way = self._checked(self._proposed(of_rows, nominal, 0)[0])
        elif undivided:
            self.ways = self._proposed(self._b, self._c, 0, _MOST_WAYS)
            self._way = _Way.from_buffer_copy(self.ways[0])
        else:
            given = (
                dtype, (rows, inner, columns), left, right, biased, way, factors, quick_sums, batch, step, alignment,
                self._target, self._divides,
            )  # fmt: skip
            self._way = self._kept_or_chosen(name_for("product", driver().identity(), _version(), *given))
        self._room = self._way.workspace
        self._biased = biased
        self._bias = c_uint64()
        self._factors = 1.0, 0.0
        self._numbers: Any = np.zeros((2, BETA), np.uint8).view(factor_type)[:, 0]
        self._numbers[:] = self._factors
        function = ctypes.cast(api.cublasLtMatmul, c_void_p).value
        layouts = (each.value for each in (self._b, self._a, self._c))
        entries = (
            function, id(Failed), _handle(HERE.ordinal).value, self._operation.value, self._numbers.ctypes.data,
            *layouts, ctypes.addressof(self._way), self._room,
        )  # fmt: skip
        self._table = np.array(entries, np.int64)
        self._run = device_product()

    def _set(self, attribute: int, value: Any) -> None:
        _check(
            _library().cublasLtMatmulDescSetAttribute(self._operation, attribute, byref(value), ctypes.sizeof(value))
        )

    def use(self, way: Any) -> None:
        """Compute by one of `ways` from now on."""
        COMPILE_QUEUE.catch_up()
        ctypes.memmove(byref(self._way), byref(way), ctypes.sizeof(way))

    @staticmethod
    def _repeat(layout: c_void_p, count: int, apart: int) -> None:
        for attribute, value in ((_COUNT, c_int32(count)), (_APART, c_int64(apart))):
            given = layout, attribute, byref(value), c_size_t(ctypes.sizeof(value))
            _check(_library().cublasLtMatrixLayoutSetAttribute(*given))

    @staticmethod
    def _layout(kind: int, rows: int, columns: int, step: int) -> c_void_p:
        found = c_void_p()
        _check(_library().cublasLtMatrixLayoutCreate(byref(found), kind, rows, columns, step))
        return found

    def _kept_or_chosen(self, name: str) -> _Way:
        """A way to compute it: the one on disk, which the library's own version has chosen before."""
        content = load(name)
        if content is not None and len(content) == ctypes.sizeof(_Way):
            if COMPILE_QUEUE.steps is not None:
                _wake()
            return _Way.from_buffer_copy(content)
        found = self._proposed(self._b, self._c, _WORKSPACE if self._divides else 0)[0]
        store(name, bytes(found))
        return found

    def _checked(self, way: _Way) -> _Way:
        """A way that was chosen for another number of rows, if it does for this one."""
        found = _Way()
        given = self._operation, self._a, self._b, self._c, self._c
        _check(_library().cublasLtMatmulAlgoCheck(_handle(HERE.ordinal), *given, byref(way), byref(found)))
        if found.workspace:
            raise Refused("cuBLASLt: the way divides sums")
        way.workspace = 0
        return way

    def _proposed(self, left: c_void_p, result: c_void_p, workspace: int, most: int = 1) -> list[_Way]:
        """What the library proposes, at least one way; without a workspace ways that do not divide sums."""
        api = _library()
        wish, found, count = c_void_p(), (_Way * most)(), c_int()
        _check(api.cublasLtMatmulPreferenceCreate(byref(wish)))
        try:
            room = c_size_t(workspace)
            _check(api.cublasLtMatmulPreferenceSetAttribute(wish, _MOST_WORKSPACE, byref(room), c_size_t(8)))
            if not workspace:
                none = c_uint32(0)
                _check(api.cublasLtMatmulPreferenceSetAttribute(wish, _WAYS_TO_JOIN, byref(none), c_size_t(4)))
            for each in _ALIGNMENTS:
                least = c_uint32(self._alignment)
                _check(api.cublasLtMatmulPreferenceSetAttribute(wish, each, byref(least), c_size_t(4)))
            self._set(_MULTIPROCESSORS, c_int32(self._target))
            given = self._operation, self._a, left, result, result
            _check(api.cublasLtMatmulAlgoGetHeuristic(_handle(HERE.ordinal), *given, wish, most, found, byref(count)))
        finally:
            self._set(_MULTIPROCESSORS, c_int32(0))
            api.cublasLtMatmulPreferenceDestroy(wish)
        proposed = [_Way.from_buffer_copy(each) for each in found[: count.value] if not each.state]
        if not proposed:
            raise Refused("cuBLASLt: no way to compute this product")
        return proposed

    def __call__(
        self, result: DeviceArray, left: DeviceArray, right: DeviceArray, bias: int, alpha: float, beta: float
    ) -> None:
        """Compute into `result`; `bias` is the address of the row to add, where one was planned for."""
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._settle, bias, alpha, beta)
        else:
            self._settle(bias, alpha, beta)
        self.multiply(result.pointer, left.pointer, right.pointer)

    def _settle(self, bias: int, alpha: float, beta: float) -> None:
        """Let the next product be with these."""
        if self._biased and self._bias.value != bias:
            self._bias.value = bias
            self._set(_BIAS, self._bias)
        if self._factors != (alpha, beta):
            self._factors = alpha, beta
            self._numbers[:] = alpha, beta

    def scaled(self, result: DeviceArray, left: DeviceArray, right: DeviceArray, of_left: int, of_right: int) -> None:
        """The product times two numbers, whose addresses are given: of factors of 8 bits."""
        COMPILE_QUEUE.catch_up()  # a product before this one may be with other numbers
        self._set(_SCALE_A, c_uint64(of_right))
        self._set(_SCALE_B, c_uint64(of_left))
        self.multiply(result.pointer, left.pointer, right.pointer)

    def plus_row(self, result: int, left: int, right: int, bias: int) -> None:
        """The product by addresses, plus the row at `bias`."""
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._settle, bias, 1.0, 0.0)
        else:
            self._settle(bias, 1.0, 0.0)
        self.multiply(result, left, right)

    def increase(self, result: int, left: int, right: int) -> None:
        """The product by addresses, plus what stands in the result."""
        self._settle(0, 1.0, 1.0)
        self.multiply(result, left, right)

    def multiply(self, result: int, left: int, right: int) -> None:
        """The product by addresses, with the factors of the last call: 1 and 0 to begin with."""
        stream = driver().queue()
        workspace = scratch(self._room, stream)[0] if self._room else 0
        if COMPILE_QUEUE.steps is not None:
            COMPILE_QUEUE.start(self._multiply_in, result, left, right, workspace, stream)
        else:
            self._run(self._table, result, left, right, workspace, stream)

    def _multiply_in(self, *given: int) -> None:
        self._run(self._table, *given)
