"""Python's cyclic collector waits, and goes on as it was before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from flambeau._core.process.collector import collector_paused


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """As it is in most programs, whatever runs before."""
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_it_waits_and_goes_on() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(ImportError), collector_paused():
        raise ImportError
    assert gc.isenabled()


def test_what_the_program_has_switched_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()
