"""Whole networks, traced under both libraries: the same code, and the same results as the network itself."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.differential import compare
from ..support.networks import SCENARIOS, network


def _traced(T: Any, name: str) -> Any:
    """The code of a network and whether it computes what the network computes; or how tracing fails."""
    model, args, kwargs = network(T, name)
    model.eval()
    try:
        traced = T.fx.symbolic_trace(model)
    except Exception:
        return "cannot be traced"
    traced.graph.lint()
    expected, actual = model(*args, **kwargs), traced(*args, **kwargs)
    leaves = T.utils._pytree.tree_leaves
    same = all(T.equal(a, b) for a, b in zip(leaves(expected), leaves(actual), strict=True) if a is not None)
    return traced.code, str(traced.graph), same


def test_there_are_33_networks() -> None:
    assert len(SCENARIOS) == 33


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_code(name: str) -> None:
    compare(_traced, name)
