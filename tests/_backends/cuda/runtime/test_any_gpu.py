"""At the levels of `flambeau.reproducible` nothing is chosen by which GPU of its architecture there is."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.cuda.arrays.array import form_of
from flambeau._backends.cuda.linalg import blaslt, fixed_order, products
from flambeau._backends.cuda.linalg.blaslt import Batch, Matrix
from flambeau._backends.cuda.runtime import any_gpu
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._backends.cuda.runtime.driver import driver
from tests.support import another_gpu
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

_ROWS, _COLUMNS = Matrix(False, 64), Matrix(True, 64)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")


@pytest.fixture(autouse=True)
def _driver() -> None:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401


def test_work_is_cut_for_a_common_gpu_at_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for own in (114, 132):
        monkeypatch.setattr(driver(), "resident_threads", lambda count, own=own: (count or own) * 2048)
        with flambeau.reproducible("run"):
            found.append(any_gpu.resident_threads())
        assert any_gpu.resident_threads() == own * 2048
    assert found[0] == found[1]


def test_an_architecture_without_figures_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver(), "generation", lambda: 350)
    with flambeau.reproducible("run"):
        assert any_gpu.common_gpu() is any_gpu._OTHERWISE
    assert any_gpu.common_gpu() is None


# ----- ways of cuBLASLt -----------------------------------------------------------------------------------------------


class _Library:
    """cuBLASLt as far as plans ask it; it notes for how many multiprocessors, and with how much memory, they ask."""

    cublasLtMatmul = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)

    def __init__(self) -> None:
        self.target = 0
        self.room: int | None = None
        self.asked: list[tuple[int, int | None]] = []
        self.kinds: tuple[int, int] | None = None

    def __getattr__(self, name: str) -> Any:
        return self._made if name.endswith("Create") else lambda *given: 0

    def _made(self, place: Any, *given: Any) -> int:
        place._obj.value = 1
        return 0

    def cublasLtMatmulDescCreate(self, operation: Any, way: int, kind: int) -> int:
        self.kinds = way, kind
        return self._made(operation)

    def cublasLtMatmulDescSetAttribute(self, operation: Any, name: int, value: Any, size: int) -> int:
        if name == blaslt._MULTIPROCESSORS:
            self.target = value._obj.value
        return 0

    def cublasLtMatmulPreferenceSetAttribute(self, wish: Any, name: int, value: Any, size: Any) -> int:
        if name == blaslt._MOST_WORKSPACE:
            self.room = value._obj.value
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *given: Any) -> int:
        self.asked.append((self.target, self.room))
        given[-1]._obj.value = 1
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> _Library:
    """It, in place of the library."""
    found = _Library()
    monkeypatch.setattr(blaslt, "_library", lambda: found)
    monkeypatch.setattr(blaslt, "_version", lambda: 1)
    monkeypatch.setattr(blaslt, "_handle", lambda ordinal: ctypes.c_void_p(1))
    monkeypatch.setattr(blaslt, "load", lambda name: None)
    monkeypatch.setattr(blaslt, "store", lambda name, content: None)
    return found


def _asked(library: _Library, dtype: str, level: str | None, shortened: bool = False) -> tuple[int, int | None]:
    library.asked.clear()
    with flambeau.reproducible(level):
        blaslt.Product(dtype, 64, 64, 64, _ROWS, _COLUMNS, False, shortened)
    assert library.target == 0  # the product itself runs on the whole GPU
    (asked,) = library.asked
    return asked


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_wide_numbers_are_multiplied_as_on_the_smallest_gpu(library: _Library, dtype: str) -> None:
    assert _asked(library, dtype, None) == (0, blaslt._WORKSPACE)
    assert _asked(library, dtype, "run") == (78, blaslt._WORKSPACE)


@pytest.mark.parametrize(("dtype", "shortened"), [("float16", False), ("bfloat16", False), ("float32", True)])
def test_sums_of_tensor_cores_are_not_divided(library: _Library, dtype: str, shortened: bool) -> None:
    assert _asked(library, dtype, None, shortened) == (0, blaslt._WORKSPACE)
    assert _asked(library, dtype, "run", shortened) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "batch"),
    [(1, 64, 64, None), (64, 64, 1, None), (64, 63, 64, None), (64, 64, 63, None), (8, 64, 64, Batch(2, 511, 512, 64))],
)
def test_products_with_several_orders_are_left_to_generated_kernels(
    library: _Library, rows: int, inner: int, columns: int, batch: Batch | None
) -> None:
    given = "bfloat16", rows, inner, columns, _ROWS, _COLUMNS, False, False, None, False, False, False, batch
    blaslt.Product(*given)
    with flambeau.reproducible("run"), pytest.raises(blaslt.Refused, match="depends on the GPU"):
        blaslt.Product(*given)


@pytest.mark.parametrize("level", [None, "run", "batch"])
def test_ways_whose_bits_are_compared_are_those_of_the_gpu_at_hand(library: _Library, level: str | None) -> None:
    given = "float32", 64, 64, 64, _ROWS, _COLUMNS, False, False, None, False, False, True, None, None, 256
    with flambeau.reproducible(level):
        blaslt.Product(*given, True)
        blaslt.Product(*given)
    assert library.asked == [(0, 0), (0 if level is None else 78, 0)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sums_over_samples_need_no_order_for_the_batch(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    """Gradients of weights took 14 times as long where they were multiplied in one order."""
    taken: list[str] = []
    for name in ("on_any_gpu", "_in_order"):
        monkeypatch.setattr(fixed_order, name, lambda *given, name=name: taken.append(name))
    monkeypatch.setattr(fixed_order, "is_there", lambda: True)
    left, right = (form_of((512, 64), np.dtype(dtype)) for _ in range(2))
    with flambeau.reproducible("batch"):
        products.prepared_columns(left, right)
        assert taken == ["on_any_gpu"]
        fixed_order.multiplying(form_of((64, 64), left.dtype), left.T, right)
    assert taken == ["on_any_gpu", "_in_order"]


def test_factors_are_of_the_type_of_wide_elements(library: _Library) -> None:
    for dtype, way, kind in (("float64", 70, 1), ("complex64", 68, 4), ("complex128", 70, 5), ("bfloat16", 68, 0)):
        product = blaslt.Product(dtype, 64, 64, 64, _ROWS, _COLUMNS, False, False)
        assert library.kinds == (way, kind)
        assert product._numbers.tolist() == [1, 0]
        assert product._numbers.strides == (16,)


# ----- a GPU that answers as another one ------------------------------------------------------------------------------

_NATIVE = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="machine code of x86-64 under Linux"
)


def _function(code: bytes, *arguments: Any) -> Any:
    room = mmap.mmap(-1, 4096, prot=another_gpu._WRITABLE)
    room.write(code)
    another_gpu._kept.append(room)
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(ctypes.addressof(ctypes.c_char.from_buffer(room)))


@_NATIVE
def test_overwritten_functions_answer_from_a_table() -> None:
    table = np.arange(256, dtype=np.int32) * 3
    asked = _function(b"\xb8\x07\x00\x00\x00\xc3" + bytes(10), ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int)
    value = ctypes.c_int()
    assert asked(value, 16, 0) == 7
    another_gpu._overwrite(asked, another_gpu._attribute_code(table.ctypes.data))
    assert (asked(value, 16, 0), value.value) == (0, 48)
    assert (asked(value, 255, 0), value.value) == (0, 765)
    assert (asked(value, 256, 0), value.value) == (1, 765)
    assert (asked(value, -1, 0), value.value) == (1, 765)


@_NATIVE
def test_overwritten_functions_name_another_gpu_and_its_memory() -> None:
    size = ctypes.c_size_t()
    memory = _function(another_gpu._memory_code(80 << 30), ctypes.POINTER(ctypes.c_size_t), ctypes.c_int)
    assert (memory(size, 0), size.value) == (0, 80 << 30)
    title = np.frombuffer(b"NVIDIA H20".ljust(32, b"\0"), np.uint64)
    text = ctypes.create_string_buffer(100)
    name = _function(another_gpu._name_code(title), ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
    assert (name(text, 100, 0), text.value) == (0, b"NVIDIA H20")
