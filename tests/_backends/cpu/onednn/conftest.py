"""oneDNN for the tests that need it, and a stand-in for those that need only the calls."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn import library, memory, primitives
from tests._backends.cpu.onednn.stand_in import StandIn


@pytest.fixture
def dnn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package with the real library; its reference code will do where a processor has nothing better."""
    if (why_not := onednn.reason()) is not None:
        pytest.skip(why_not)
    monkeypatch.setattr(primitives, "reference_allowed", True)
    yield onednn
    onednn.clear()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A library that notes what it is asked for and computes nothing."""
    replacement = StandIn()
    for name in ("memory", "primitives", "matmul"):
        module = importlib.import_module(f"{onednn.__name__}.{name}")
        monkeypatch.setattr(module, "get", lambda: replacement)
    _forget()
    yield replacement
    _forget()


def _forget() -> None:
    """Objects of one library mean nothing to another."""
    primitives.clear()
    memory.descriptor.cache_clear()


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As if the library had not been looked for yet."""
    monkeypatch.setattr(library, "_LOADED", library._Loaded())
    for variable in ("FLAMBEAU_ONEDNN", "FLAMBEAU_ONEDNN_LIBRARY"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch
