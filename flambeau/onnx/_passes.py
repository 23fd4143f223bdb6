"""Passes over a graph: nothing is computed twice, and nothing that nobody reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ._graph import Graph, Node

_DRAWING = {"RandomNormalLike", "RandomUniformLike", "RandomNormal", "RandomUniform", "Bernoulli", "Multinomial",
            "Dropout"}  # fmt: skip


_OPTIONAL = {"MaxPool", "LSTM", "GRU", "RNN", "LayerNormalization", "Unique", "BatchNormalization", "Dropout"}
"""Operators whose later results may be left out."""


def rename(graph: Graph, old: str, new: str) -> None:
    """Give a value another name."""
    for node in graph.nodes:
        node.inputs = [new if each == old else each for each in node.inputs]
        node.outputs = [new if each == old else each for each in node.outputs]


def share_equal_nodes(graph: Graph, results: Collection[str]) -> None:
    """Let nodes that compute the same be one; the results of the graph keep their own."""
    known: dict[Any, Node] = {}
    renamed: dict[str, str] = {}
    kept = []
    for node in graph.nodes:
        node.inputs = [renamed.get(each, each) for each in node.inputs]
        key = _key(node)
        first = known.get(key)
        if key is None or first is None or any(each in results for each in node.outputs):
            kept.append(node)
            if key is not None and first is None:
                known[key] = node
        else:
            renamed.update(zip(node.outputs, first.outputs, strict=True))
    graph.nodes = kept


def _key(node: Node) -> Any:
    if node.kind in _DRAWING or node.domain:
        return None
    attributes = [(name, _frozen(value)) for name, value in sorted(node.attributes.items())]
    return (node.kind, tuple(node.inputs), len(node.outputs), tuple(attributes))


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    return tuple(value) if isinstance(value, list) else value


def drop_unread(graph: Graph, results: Collection[str]) -> None:
    """Leave out nodes and constants that no result depends on, and outputs that nobody reads."""
    read = set(results)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(each in read for each in node.outputs):
            read.update(node.inputs)
            while len(node.outputs) > 1 and node.kind in _OPTIONAL and node.outputs[-1] not in read:
                node.outputs.pop()
            kept.append(node)
    graph.nodes = kept[::-1]
    graph.constants = {name: array for name, array in graph.constants.items() if name in read}


def skip_copies(graph: Graph, results: Collection[str]) -> None:
    """Read past nodes that hand their operand on as it is."""
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        node.inputs = [renamed.get(each, each) for each in node.inputs]
        if node.kind == "Identity" and not node.domain and node.outputs[0] not in results:
            renamed[node.outputs[0]] = node.inputs[0]


def tidy(graph: Graph, results: Collection[str]) -> None:
    """All passes that need no arithmetic."""
    skip_copies(graph, results)
    share_equal_nodes(graph, results)
    drop_unread(graph, results)
