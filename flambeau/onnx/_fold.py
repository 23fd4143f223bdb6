"""Constant folding."""

from __future__ import annotations

from collections.abc import Collection

from ._graph import Graph


def fold_constants(graph: Graph, results: Collection[str]) -> None:
    """Compute once what depends on constants alone."""
