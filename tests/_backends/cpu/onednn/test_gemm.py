"""Products by the library's `sgemm`: all layouts of matrices, at once and written down for a call list."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn.library import get
from flambeau._core.process.processor import ON_X86_64
from flambeau.compiler._compiled import Compiled

from ..linalg.test_matmul import matrix

MODULE: Any = importlib.import_module("flambeau._backends.cpu.onednn.gemm")
ON_X86 = pytest.mark.skipif(not ON_X86_64, reason="elsewhere the library's sgemm is plain loops")


@pytest.mark.parametrize("sizes", [(2, 3, 4), (70, 500, 90), (33, 1500, 65)])
@pytest.mark.parametrize("left", ["rows", "columns", "part"])
@pytest.mark.parametrize("right", ["rows", "columns", "part"])
def test_layouts(dnn: Any, sizes: tuple[int, int, int], left: str, right: str) -> None:
    rows, length, columns = sizes
    a, b = matrix(rows, length, left, "float32"), matrix(length, columns, right, "float32")
    found = onednn.gemm(a, b)
    if left == right == "columns":  # left to others, whichever the sizes
        assert found is None
        return
    assert found.flags.c_contiguous
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert (np.abs(found - exact) <= bound * np.finfo(np.float32).eps * 16).all()


@pytest.mark.parametrize(("rows", "columns"), [(40, 50), (1700, 90)])
@pytest.mark.parametrize("compiles", [True, False])
def test_rows_plus_an_addend(
    dnn: Any, compiles: bool, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By generated code, on all threads for many rows, and by Python: the bits of a step of its own for short sums."""
    if not compiles:
        monkeypatch.setattr(MODULE, "_kernel", lambda adds: None)
    a, b = matrix(rows, 60, "rows", "float32"), matrix(60, columns, "columns", "float32")
    addend = np.linspace(-3, 3, columns, dtype=np.float32)
    np.testing.assert_array_equal(onednn.gemm(a, b, addend), onednn.gemm(a, b) + addend)


@ON_X86
def test_what_it_suits() -> None:
    def suits(rows: int, length: int, columns: int, left: str = "rows", right: str = "rows") -> bool:
        return onednn.gemm(matrix(rows, length, left, "float32"), matrix(length, columns, right, "float32")) is not None

    assert suits(100, 100, 100)
    assert suits(100, 100, 100, "part", "part")
    assert suits(100, 100, 100, "columns")
    assert suits(100, 100, 100, right="columns")
    assert not suits(100, 100, 100, "columns", "columns")
    assert not suits(100, 100, 100, "steps")
    assert not suits(700, 600, 100, "columns")  # a narrow result of many rows
    assert suits(500, 600, 100, "columns")  # the gradient of a weight
    assert suits(100, 600, 600, "columns")
    assert not suits(64, 600, 600, right="columns")  # few rows
    assert suits(65, 600, 600, right="columns")
    whole = np.ones((100, 100), np.float32)
    assert onednn.gemm(whole[::-1], whole) is None
    assert onednn.gemm(whole.astype(np.float64), whole.astype(np.float64)) is None
    assert onednn.gemm(np.broadcast_to(whole[0], (100, 100)), whole) is None


@ON_X86
def test_a_tape_calls_it_without_python(dnn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both calls have the same bits; the one of Python is not made by the program."""
    before = flambeau.get_num_threads()
    flambeau.set_num_threads(1)
    try:
        x = flambeau.linspace(-1, 1, 120 * 130).reshape(120, 130) * 1

        def function(x: Any) -> Any:
            return (x @ x.T).relu() @ x

        compiled = Compiled(function)
        for _ in range(5):  # the last is seen to be right
            compiled(x)
        expected = function(x * 2)
        assert compiled.programs
        asked: list[str] = []
        monkeypatch.setattr(get(), "call", lambda name, *args: asked.append(name))
        assert flambeau.equal(compiled(x * 2), expected)
        assert not asked
    finally:
        flambeau.set_num_threads(before)


@ON_X86
def test_an_error_of_the_library_is_raised(dnn: Any) -> None:
    from flambeau._codegen.machine.product_call import product_call

    a = np.ones((4, 4), np.float32)
    wrong = [MODULE.place(get().sgemm), id(RuntimeError), ord("N"), ord("N"), 4, 4, 4, 1, 1, 1]  # rows overlap
    with pytest.raises(RuntimeError):
        product_call(False)(np.empty_like(a), a, a, np.array(wrong, np.int64))
