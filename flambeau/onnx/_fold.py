"""Constant folding: what depends on constants alone is computed once, by the operators' readers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from .._core.backend import to_host
from .._core.tensor import Tensor
from ..autograd.grad_mode import no_grad
from ._element_types import tensor_over
from ._graph import Graph, Node
from ._passes import tidy
from ._reading import READERS, Operator

_LARGEST = 1 << 20
"""Elements; a larger result would make the file larger than what computes it."""

_KEPT = {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout", "QuantizeLinear",
         "DequantizeLinear"}  # fmt: skip


def fold_constants(graph: Graph, results: Collection[str]) -> None:
    """Replace nodes whose operands are constants by their results."""
    tensors: dict[str, Any] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        made = _folded(graph, node, tensors) if not any(each in results for each in node.outputs) else None
        if made is None:
            kept.append(node)
        else:
            for name, tensor in zip(node.outputs, made, strict=False):
                graph.constants[name] = np.array(to_host(tensor._array))
    graph.nodes = kept
    tidy(graph, results)


def _folded(graph: Graph, node: Node, tensors: dict[str, Any]) -> list[Tensor] | None:
    """The results of a node, if they can be computed now."""
    read = READERS.get(("", node.kind))
    if read is None or node.domain or node.kind in _KEPT:
        return None
    if any(each and each not in graph.constants for each in node.inputs):
        return None
    operands = [_tensor(graph, each, tensors) if each else None for each in node.inputs]
    attributes = {
        name: tensor_over(np.array(value)) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
    }
    try:
        with no_grad():
            made = read(Operator(node.kind, graph.opset, attributes, len(node.outputs)), *operands)
    except Exception:  # whatever is wrong with it, the runtime will say
        return None
    results = list(made) if isinstance(made, tuple) else [made]
    grown = sum(each.numel() for each in results) > sum(each.numel() for each in operands if each is not None)
    if len(results) < len(node.outputs) or (grown and results[0].numel() > _LARGEST):
        return None
    return results


def _tensor(graph: Graph, name: str, tensors: dict[str, Any]) -> Tensor:
    found: Tensor | None = tensors.get(name)
    if found is None:
        found = tensors[name] = tensor_over(np.array(graph.constants[name]))
    return found
