"""Functions of CUDA's driver, with a library that stands in for it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from flambeau._backends.cuda.runtime.driver_functions import DriverFunctions


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> DriverFunctions:
    def status(value: ctypes.c_int) -> int:
        return int(value)

    library = SimpleNamespace(cuStatus=status)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    return DriverFunctions({"cuStatus": (ctypes.c_int,), "cuLater": ()}, "this needs a later CUDA")


def test_a_call_that_fails_raises(call: DriverFunctions) -> None:
    call("cuStatus", 0)
    assert call.status_of("cuStatus", 2) == 2
    with pytest.raises(RuntimeError, match=r"CUDA error 2: cuStatus failed"):
        call("cuStatus", 2)


def test_a_function_that_the_driver_lacks(call: DriverFunctions) -> None:
    with pytest.raises(RuntimeError, match=r"the driver of this GPU has no cuLater: this needs a later CUDA"):
        call("cuLater")
