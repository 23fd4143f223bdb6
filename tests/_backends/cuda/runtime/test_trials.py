"""Calls with the same bits as another one: which of them are found, in memory that nobody else has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau._backends.cuda.arrays.array import over
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._backends.cuda.runtime.synchronization import ERROR, HERE, SYNCHRONIZATIONS
from flambeau._backends.cuda.runtime.trials import Buffers, first_alike, quickest_alike
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
SIZE = 100
BUFFERS = Buffers(np.dtype(np.float32), SIZE, (SIZE, SIZE))


@pytest.fixture(autouse=True)
def _driver() -> None:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401


class _Nobody:
    ptr = 0


def _call(function: Callable[[Any, Any], Any]) -> Any:
    """A call on addresses that computes a function of two arrays."""

    def run(result: int, *operands: int) -> None:
        seen: Any = drivers.driver().seen
        out, one, two = (seen(over(_Nobody(), each, (SIZE,), BUFFERS.dtype)) for each in (result, *operands))
        out[...] = function(one, two)

    return run


def _refusing(*addresses: int) -> None:
    raise KeyError("not here")


def _with_other_zeros(one: Any, two: Any) -> Any:
    product = one * two
    return np.where(abs(product) < np.finfo(np.float32).tiny, np.float32(0), product)


REFERENCE: Any = _call(lambda one, two: one * two)
SAME = _call(lambda one, two: two * one)
WRONG = _call(lambda one, two: one * two * np.float32(1.0000001))
SMALL_WRONG = _call(_with_other_zeros)


def test_the_first_call_with_the_same_bits_is_found() -> None:
    others = [_refusing, WRONG, SMALL_WRONG, SAME, SAME]
    assert first_alike(BUFFERS, REFERENCE, others, (KeyError,)) == 3
    assert first_alike(BUFFERS, REFERENCE, others[:3], (KeyError,)) is None


def test_a_call_with_other_bits_is_never_taken() -> None:
    assert quickest_alike(BUFFERS, REFERENCE, [WRONG, SMALL_WRONG, _refusing], (KeyError,)) is REFERENCE
    assert quickest_alike(BUFFERS, REFERENCE, [WRONG, SAME], (KeyError,)) in (REFERENCE, SAME)


def test_nothing_is_tried_while_work_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "recording", object())
    assert quickest_alike(BUFFERS, REFERENCE, [SAME], ()) is None
    assert first_alike(BUFFERS, REFERENCE, [SAME], ()) is None


def test_waiting_for_the_device_is_no_step_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SYNCHRONIZATIONS, "mode", ERROR)
    assert first_alike(BUFFERS, REFERENCE, [SAME], ()) == 0
    assert SYNCHRONIZATIONS.mode == ERROR
