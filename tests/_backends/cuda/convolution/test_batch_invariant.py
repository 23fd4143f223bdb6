"""Convolutions of samples in any batch: which plans are taken where some of the library's give other bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from flambeau._backends.cuda.arrays.array import empty, form_of, from_host, over, to_host
from flambeau._backends.cuda.convolution import batch_invariant
from flambeau._backends.cuda.cudnn.convolutions import FORWARD, OF_INPUT
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._backends.cuda.runtime.synchronization import HERE
from flambeau._core.geometry.moving_windows import Geometry
from flambeau._core.process.reproducibility import NotKept
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
SINGLE, GEOMETRY = np.dtype(np.float32), Geometry((1, 1), (0, 0), (1, 1), 1)


class _Nobody:
    ptr = 0


class _Plan:
    """Multiplies the pixels of images with a matrix, and adds up the channels in an order of its own."""

    used: list[tuple[str, int]] = []  # noqa: RUF012

    def __init__(self, way: str, product: int, forms: Any) -> None:
        self._way, self._product, self._forms = way, product, forms

    def __call__(self, *addresses: int) -> None:
        seen: Any = drivers.driver().seen
        arrays = [
            seen(over(_Nobody(), place, form.shape, SINGLE, form.strides))
            for place, form in zip(addresses, self._forms, strict=True)
        ]
        input, weight, output = arrays
        matrix = weight[:, :, 0, 0]
        given, result = (input, output) if self._product == FORWARD else (output, input)
        if self._product == OF_INPUT:
            matrix = matrix.T
        channels = range(given.shape[1])
        total = np.zeros_like(result)
        for k in channels if self._way == "forth" else reversed(channels):
            total += matrix[:, k, None, None] * given[:, k : k + 1]
        result[...] = total
        self.used.append((self._way, len(result)))


def _library(monkeypatch: pytest.MonkeyPatch, of_one: list[str], of_many: list[str]) -> None:
    """Proposes these ways for one sample and for several."""

    def several(product: int, dtype: str, forms: Any, geometry: Geometry, most: int, own_gpu: bool) -> Iterator[Any]:
        for way in (of_one if forms[0].shape[0] == 1 else of_many)[:most]:
            yield _Plan(way, product, forms)

    monkeypatch.setattr(batch_invariant, "several", several)
    first = of_one[0] if of_one else ""
    monkeypatch.setattr(
        batch_invariant, "Convolution", lambda product, dtype, forms, geometry: _Plan(first, product, forms)
    )


@pytest.fixture(autouse=True)
def _driver() -> Iterator[None]:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401

    batch_invariant._of_one.clear()
    batch_invariant._of_several.clear()
    yield
    batch_invariant._of_one.clear()
    batch_invariant._of_several.clear()


def _run(product: int, samples: int) -> tuple[Any, Any]:
    """The result for a batch, and for each of its samples alone."""
    random = np.random.default_rng(0)
    input, weight, output = (
        random.standard_normal(shape, np.float32) for shape in ((samples, 12, 3, 3), (8, 12, 1, 1), (samples, 8, 3, 3))
    )
    found: list[Any] = []
    for part in (slice(None), *[slice(each, each + 1) for each in range(samples)]):
        arrays = [from_host(each) for each in (input[part].copy(), weight, output[part].copy())]
        result = 2 if product == FORWARD else 0
        arrays[result] = empty(arrays[result].shape, SINGLE)
        forms = [form_of(each.shape, SINGLE) for each in arrays]
        plan: Any = batch_invariant.plan_of_samples(product, forms, GEOMETRY)
        _Plan.used.clear()
        plan(*[each.pointer for each in arrays])
        found.append((to_host(arrays[result]), list(_Plan.used)))
    (whole, used), *alone = found
    assert whole.tobytes() == b"".join(each.tobytes() for each, _ in alone)
    return used, [each for _, (each,) in alone]


@pytest.mark.parametrize("product", [FORWARD, OF_INPUT])
def test_a_plan_for_the_batch_is_taken_where_it_has_the_bits(product: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _library(monkeypatch, ["forth", "back"], ["back", "forth"])
    used, alone = _run(product, 5)
    assert used == [("back", 5)], "the library's first choice for batches"
    assert alone == [("back", 1)] * 5


@pytest.mark.parametrize("product", [FORWARD, OF_INPUT])
def test_samples_are_computed_one_after_the_other_elsewhere(product: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _library(monkeypatch, ["forth"], ["back"])
    used, alone = _run(product, 3)
    assert used == [("forth", 1)] * 3
    assert alone == [("forth", 1)] * 3


def test_parts_of_a_batch_have_plans_where_the_whole_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(product: int, dtype: str, forms: Any, geometry: Geometry, most: int, own_gpu: bool) -> Iterator[Any]:
        samples = forms[0].shape[0]
        yield _Plan("forth" if samples in (1, 2, batch_invariant._NOMINAL) else "back", product, forms)

    monkeypatch.setattr(batch_invariant, "several", several)
    used, alone = _run(FORWARD, 7)
    assert used == [("forth", 2), ("forth", 2), ("forth", 2), ("forth", 1)]
    assert alone == [("forth", 1)] * 7


def test_there_may_be_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    _library(monkeypatch, [], [])
    forms = [form_of(shape, SINGLE) for shape in ((2, 4, 3, 3), (8, 4, 1, 1), (2, 8, 3, 3))]
    assert batch_invariant.plan_of_samples(FORWARD, forms, GEOMETRY) is None


def test_a_graph_is_not_captured_of_what_has_not_been_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    _library(monkeypatch, ["forth"], ["forth"])
    forms = [form_of(shape, SINGLE) for shape in ((2, 4, 3, 3), (8, 4, 1, 1), (2, 8, 3, 3))]
    monkeypatch.setattr(HERE, "recording", object())
    with pytest.raises(NotKept, match="captured before it has run once"):
        batch_invariant.plan_of_samples(FORWARD, forms, GEOMETRY)
