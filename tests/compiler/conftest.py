"""On a slow machine compiled functions have the budget of time that they have on any other."""

from __future__ import annotations

import math

import pytest

from flambeau.compiler.capture import effort


@pytest.fixture(autouse=True)
def _calls_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call is so long that a refusal leaves it three plain calls: tests make a dozen calls."""
    monkeypatch.setattr(effort, "_SHORT", math.inf)
