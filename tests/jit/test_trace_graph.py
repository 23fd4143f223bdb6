"""`torch.jit._get_trace_graph`: operators, sizes and scopes of a run, beside PyTorch's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential

_SMALL = {"prim::Constant", "prim::ListConstruct", "prim::ListUnpack", "prim::TupleConstruct"}


def _seen(value: Any) -> Any:
    return value.type().sizes() if value.isCompleteTensor() else None


def _operators(graph: Any) -> list[Any]:
    return [
        (each.kind(), [_seen(value) for value in each.inputs()], [_seen(value) for value in each.outputs()])
        for each in graph.nodes()
        if each.kind() not in _SMALL
    ]


def _network(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.ConvTranspose2d(2, 2, 2, stride=2), nn.Flatten(),
        nn.LayerNorm(32), nn.Linear(32, 3), nn.GELU(),
    ).eval()  # fmt: skip


@differential
def test_operators_and_sizes_of_a_network(torch: Any) -> Any:
    x = torch.ones(2, 1, 4, 4)
    graph, result = torch.jit._get_trace_graph(_network(torch.nn), x)
    convolutions = graph.findAllNodes("aten::_convolution")
    return (
        _operators(graph),
        result.shape,
        [_seen(each) for each in graph.inputs()],
        [_seen(each) for each in graph.outputs()],
        [each.inputsSize() for each in convolutions],
        [list(each.inputs())[6].toIValue() for each in convolutions],
        [list(each.inputs())[3].node().kind() for each in convolutions],
        [each.type().scalarType() for each in graph.inputs()],
    )


@differential
def test_functions(torch: Any) -> Any:
    def function(x: Any, y: Any) -> Any:
        first, second = (x @ y).split(2, 1)
        return torch.nn.functional.softmax(torch.cat([first, second]), 0), torch.einsum("ij,jk->ik", x, y)

    graph, results = torch.jit._get_trace_graph(function, (torch.ones(2, 3), torch.ones(3, 4)))
    kinds = [each.kind() for each in graph.nodes() if each.kind() not in _SMALL]
    equation = next(iter(graph.findNode("aten::einsum").inputs())).toIValue()
    return kinds, [each.shape for each in results], equation, torch._C._get_tracing_state()


@differential
def test_scopes_are_those_that_hooks_enter(torch: Any) -> Any:
    model = _network(torch.nn)

    def enter(module: Any, inputs: Any) -> None:
        torch._C._get_tracing_state().push_scope(type(module).__name__)

    def leave(module: Any, inputs: Any, outputs: Any) -> None:
        torch._C._get_tracing_state().pop_scope()

    for each in model.modules():
        each.register_forward_pre_hook(enter)
        each.register_forward_hook(leave)
    graph, _ = torch.jit._get_trace_graph(model, (torch.ones(1, 1, 4, 4),))
    return [(each.kind(), each.scopeName()) for each in graph.nodes() if each.kind() not in _SMALL]


def test_what_there_is_to_ask() -> None:
    graph, results, inputs = flambeau.jit._get_trace_graph(lambda x: x + 1, (flambeau.ones(3),), return_inputs=True)
    node = graph.findNode("aten::add")
    assert node.output().node() is node
    assert node.output().debugName() == next(iter(graph.outputs())).debugName()
    assert node.inputsAt(0).debugName() == "x"
    assert node.inputsAt(1).toIValue() == 1
    assert [graph.param_node().outputsSize(), graph.return_node().inputsSize()] == [1, 1]
    assert "aten::add(%x, %1" in str(graph)
    assert graph.findNode("aten::mul") is None
    assert isinstance(node, flambeau._C.Node)
    assert isinstance(graph, flambeau._C.Graph)
    assert len(inputs) == 1
    assert results.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="makes 0 values"):
        graph.return_node().output()


def test_layers_are_operators_while_flambeau_stands_in() -> None:
    program = (
        "import torch; t = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)); print('torch.linear' in t.code)"
    )
    command = [sys.executable, "-c", f"import flambeau.as_torch\n{program}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
