"""Python's cyclic collector waits, and goes on as it was before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import flambeau
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


def test_frozen_tensors_follow_their_memory() -> None:
    """`gc.freeze` hides objects from whoever looks for them, tensors on memory that moves among them."""
    base, model = flambeau.arange(6.0), flambeau.nn.Linear(2, 2)
    part, weight = base[2:4], model.weight.detach()
    gc.freeze()
    base.share_memory_()
    base.fill_(3.0)
    assert part.tolist() == [3.0, 3.0]
    gc.freeze()
    model.share_memory()
    assert weight.is_shared()
    grown = flambeau.arange(6.0)
    window = grown[2:4]
    gc.freeze()
    grown.untyped_storage().resize_(4000)
    assert window.untyped_storage().nbytes() == 4000
