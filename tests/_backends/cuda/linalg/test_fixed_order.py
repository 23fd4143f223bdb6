"""Products of one order: the library computes them where it has the bits of the generated kernels, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from flambeau._backends.cuda.arrays.array import empty, form_of, from_host, over, to_host
from flambeau._backends.cuda.linalg import fixed_order
from flambeau._backends.cuda.linalg.blaslt import Batch
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._backends.cuda.runtime.synchronization import HERE
from flambeau._core.process.reproducibility import NotKept
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
SINGLE = np.dtype(np.float32)


class _Nobody:
    ptr = 0


class _Library:
    """A stand-in for the library's plans: one way sums up as generated kernels do, others from the end or in halves."""

    ways = ["halves", "backwards", "in order"]  # noqa: RUF012
    used: list[str] = []  # noqa: RUF012

    def __init__(
        self, dtype: str, rows: int, inner: int, columns: int, left: Any, right: Any, biased: bool, shortened: bool,
        factors: Any, quick_sums: bool, any_rows: bool, undivided: bool, batch: Batch | None,
        step: None, alignment: int, own_gpu: bool,
    ) -> None:  # fmt: skip
        assert (dtype, shortened, any_rows, undivided) == ("float32", False, False, True)
        self._sizes, self._steps, self._batch = (rows, inner, columns), (left, right), batch
        self._way = ""

    def use(self, way: str) -> None:
        self._way = way

    def _windows(self, result: int, left: int, right: int) -> list[Any]:
        rows, inner, columns = self._sizes
        products, *apart = self._batch or (1, 0, 0, 0)
        seen: Any = drivers.driver().seen
        found = []
        for place, shape, matrix, step in zip(
            (left, right, result), ((rows, inner), (inner, columns), (rows, columns)), (*self._steps, None), apart,
            strict=True,
        ):  # fmt: skip
            turned, lead = (False, columns) if matrix is None else matrix
            strides = (4 * step, *((4, 4 * lead) if turned else (4 * lead, 4)))
            found.append(seen(over(_Nobody(), place, (products, *shape), SINGLE, strides)))
        return found

    def _sum(self, left: Any, right: Any) -> Any:
        inner, form = self._sizes[1], None
        if self._way == "halves":
            parts = [self._chain(left, right, range(inner // 2)), self._chain(left, right, range(inner // 2, inner))]
            return parts[0] + parts[1]
        order = range(inner) if self._way == "in order" else range(inner - 1, -1, -1)
        assert form is None
        return self._chain(left, right, order)

    @staticmethod
    def _chain(left: Any, right: Any, order: range) -> Any:
        total = np.zeros((*left.shape[:2], right.shape[2]), np.float64)
        for k in order:  # a product of two float32 is exact in float64, and nearly every sum rounds as once
            total = (left[:, :, k, None].astype(np.float64) * right[:, None, k, :] + total).astype(np.float32)
        return total.astype(np.float32)

    def multiply(self, result: int, left: int, right: int) -> None:
        one, two, out = self._windows(result, left, right)
        out[...] = self._sum(one, two)
        self.used.append(self._way)

    def increase(self, result: int, left: int, right: int) -> None:
        one, two, out = self._windows(result, left, right)
        out[...] = self._sum(one, two) + out
        self.used.append(self._way)

    def plus_row(self, result: int, left: int, right: int, row: int) -> None:
        one, two, out = self._windows(result, left, right)
        seen: Any = drivers.driver().seen
        out[...] = self._sum(one, two) + seen(over(_Nobody(), row, (self._sizes[2],), SINGLE))
        self.used.append(self._way)


@pytest.fixture(autouse=True)
def _at_batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions

    monkeypatch.setattr(fixed_order, "_WORTHWHILE", 1)
    fixed_order._quick.clear()
    fixed_order._tiny(0)  # before there is a library
    _Library.used.clear()
    with flambeau.reproducible("batch"):
        yield
    fixed_order._quick.clear()


def _drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize("tile", [*fixed_order._TILES, *fixed_order._FOR_FEW], ids=str)
@pytest.mark.parametrize("scale", [1.0, 2.0**-75], ids=["usual", "products that are zero"])
def test_all_tiles_sum_up_in_one_order(tile: Any, scale: float) -> None:
    scale = SINGLE.type(scale)
    left, right = from_host(scale * _drawn(37, 150)), from_host(scale * _drawn(41, 150)).T
    row = from_host(scale * _drawn(41) if scale == 1 else -np.zeros(41, np.float32))
    form = form_of((37, 41), SINGLE)
    driver: Any = drivers.driver()
    found = []
    fixed_order._kernel.cache_clear()
    for together, each in ((False, None), (True, tile)):
        driver.together = together
        try:
            multiply = fixed_order._generated(form, left.form, right.form, False, True, each)
            result = empty((37, 41), SINGLE)
            multiply(result.pointer, left.pointer, right.pointer, row.pointer)
        finally:
            driver.together = False
            fixed_order._kernel.cache_clear()
        found.append(to_host(result))
    assert found[0].tobytes() == found[1].tobytes()
    assert scale == 1 or np.signbit(found[0][found[0] == 0]).any(), "a negative zero keeps its sign"


def test_tiny_numbers_are_treated_as_the_library_does(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed_order._tiny.cache_clear()
    assert fixed_order._tiny(0) == "kept", "nobody can be asked"
    fixed_order._tiny.cache_clear()
    alike = {"zero": 5, "zero at the end": 0, "kept, no negative zero": 4, "kept": 3}
    generated = lambda *given: given[-1]  # noqa: E731
    monkeypatch.setattr(fixed_order, "LibraryProduct", _Library)
    monkeypatch.setattr(fixed_order, "_generated", generated)
    monkeypatch.setattr(fixed_order, "count_alike", lambda buffers, reference, others, refusals: alike[reference])
    assert fixed_order._tiny(0) == "zero"
    monkeypatch.setattr(HERE, "recording", object())
    fixed_order._tiny.cache_clear()
    with pytest.raises(NotKept, match="captured before"):
        fixed_order._tiny(0)
    fixed_order._tiny.cache_clear()


FORMS = {
    "rows": (_drawn(9, 21), _drawn(21, 12)),
    "rows by columns": (_drawn(9, 21), _drawn(12, 21).T),
    "columns by rows": (_drawn(21, 9).T, _drawn(21, 12)),
    "one row": (_drawn(1, 21), _drawn(21, 12)),
    "batches": (_drawn(4, 9, 21), _drawn(4, 21, 12)),
    "batches by columns": (_drawn(4, 9, 21), _drawn(4, 12, 21).swapaxes(1, 2)),
}


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_the_library_computes_what_it_computes_alike(name: str, added: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = (from_host(each) for each in FORMS[name])
    form = form_of((*left.shape[:-1], right.shape[-1]), SINGLE)
    start = _drawn(*form.shape)
    generated = fixed_order._generated(form, left.form, right.form, added, False)
    monkeypatch.setattr(fixed_order, "LibraryProduct", _Library)
    monkeypatch.setattr("flambeau._backends.cuda.runtime.trials._quickest", lambda arrays, calls: calls[-1])
    multiply = fixed_order.multiplying(form, left.form, right.form, added)
    assert {*_Library.used} == {"halves", "backwards", "in order"}, "all were tried"
    _Library.used.clear()
    found = []
    for each in (generated, multiply, fixed_order.multiplying(form, left.form, right.form, added)):
        result = from_host(start)
        each(result.pointer, left.pointer, right.pointer)
        found.append(to_host(result))
    assert _Library.used == ["in order"] * 2, "and are not tried again"
    assert all(each.tobytes() == found[0].tobytes() for each in found)
    exact = FORMS[name][0].astype(np.float64) @ FORMS[name][1] + added * start
    np.testing.assert_allclose(found[0], exact, 1e-4, 1e-5)


def test_rows_plus_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right, row = (from_host(each) for each in (_drawn(9, 24), _drawn(24, 12), _drawn(12)))
    form = form_of((9, 12), SINGLE)
    monkeypatch.setattr(fixed_order, "LibraryProduct", _Library)
    monkeypatch.setattr("flambeau._backends.cuda.runtime.trials._quickest", lambda arrays, calls: calls[-1])
    found = []
    for each in (
        fixed_order._generated(form, left.form, right.form, False, True),
        fixed_order.rows_product(form, left.form, right.form, biased=True),
    ):
        result = empty((9, 12), SINGLE)
        each(result.pointer, left.pointer, right.pointer, row.pointer)
        found.append(to_host(result))
    assert _Library.used[-1] == "in order"
    assert found[0].tobytes() == found[1].tobytes()
    product = empty((9, 12), SINGLE)
    fixed_order.multiplying(form, left.form, right.form)(product.pointer, left.pointer, right.pointer)
    assert (to_host(product) + to_host(row)).tobytes() == found[0].tobytes()


def test_no_way_is_taken_that_sums_up_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = (from_host(each) for each in FORMS["rows"])
    form = form_of((9, 12), SINGLE)
    monkeypatch.setattr(fixed_order, "LibraryProduct", _Library)
    monkeypatch.setattr(_Library, "ways", ["halves", "backwards"])
    multiply = fixed_order.multiplying(form, left.form, right.form)
    _Library.used.clear()
    multiply(empty((9, 12), SINGLE).pointer, left.pointer, right.pointer)
    assert not _Library.used


def test_the_library_does_not_compute_what_begins_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = (from_host(each) for each in FORMS["rows"])
    form = form_of((9, 12), SINGLE)
    monkeypatch.setattr(fixed_order, "LibraryProduct", _Library)
    monkeypatch.setattr("flambeau._backends.cuda.runtime.trials._quickest", lambda arrays, calls: calls[-1])
    multiply = fixed_order.multiplying(form, left.form, right.form)
    wanted, moved = empty((9, 12), SINGLE), empty((9 * 12 + 1,), SINGLE)
    multiply(wanted.pointer, left.pointer, right.pointer)
    _Library.used.clear()
    multiply(moved.pointer + 4, left.pointer, right.pointer)
    assert not _Library.used
    assert to_host(moved)[1:].tobytes() == to_host(wanted).tobytes()
