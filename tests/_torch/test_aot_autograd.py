"""`functorch.compile`: forward and backward as two graphs, beside PyTorch's."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential


def _functorch(torch: Any) -> Any:
    return importlib.import_module(("flambeau." if torch is flambeau else "") + "functorch.compile")


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


def _partitions(torch: Any) -> list[Any]:
    compile = _functorch(torch)
    return [compile.default_partition, compile.min_cut_rematerialization_partition]


def _computed(x: Any, weight: Any, factor: float) -> dict[str, Any]:
    hidden = (x @ weight).relu().sin().exp()
    return {"loss": (hidden * factor).sum(), "largest": hidden.argmax(), "sizes": list(hidden.shape)}


@differential
def test_results_and_gradients(torch: Any) -> Any:
    found = []
    for partition in _partitions(torch):
        x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        weight = torch.linspace(0, 2, 12).reshape(3, 4).requires_grad_()
        graphs: list[Any] = []

        def keeping(graph: Any, inputs: Any, graphs: list[Any] = graphs) -> Any:
            graphs.append(graph)
            return _functorch(torch).make_boxed_func(graph.forward)

        compiled = _functorch(torch).aot_function(_computed, keeping, partition_fn=partition)
        for _ in range(3):
            result = compiled(x, weight, 2.0)
            result["loss"].backward()
            found.append((result["loss"].detach(), result["largest"], [int(each) for each in result["sizes"]]))
        found.append((x.grad, weight.grad))
    return found


def test_graphs_are_made_once_and_the_derivative_s_when_it_is_asked_for() -> None:
    graphs: list[Any] = []
    compile = _functorch(flambeau)
    function = compile.aot_function(lambda x: x.sin().sum(), lambda graph, inputs: graphs.append(graph) or graph)
    x = flambeau.ones(3, requires_grad=True)
    first = function(x)
    assert len(graphs) == 1
    first.backward()
    function(x).backward()
    assert len(graphs) == 2
    names = [[node.name for node in graph.graph.nodes if node.op == "placeholder"] for graph in graphs]
    assert names[0] == ["primals_1"]
    assert names[1][-1] == "tangents_1"
    function(flambeau.ones(4))
    assert len(graphs) == 3


def test_numbers_and_grad_mode_are_part_of_what_a_graph_is_for() -> None:
    function = _functorch(flambeau).aot_function(lambda x, factor: x * factor, _functorch(flambeau).nop)
    x = flambeau.ones(2, requires_grad=True)
    assert function(x, 2.0).tolist() == [2.0, 2.0]
    assert function(x, 3.0).tolist() == [3.0, 3.0]
    with flambeau.no_grad():
        assert not function(x, 2.0).requires_grad


def test_a_minimum_cut_keeps_fewer_bytes() -> None:
    compile = _functorch(flambeau)
    kept = []
    for partition in _partitions(flambeau):
        forward: list[Any] = []
        function = compile.aot_function(
            lambda x: x.sin().exp().cos().sum(),
            lambda graph, inputs, forward=forward: forward.append(graph) or graph,
            partition_fn=partition,
        )
        x = flambeau.linspace(0, 1, 1000, requires_grad=True)
        function(x).backward()
        kept.append(len(next(node for node in forward[0].graph.nodes if node.op == "output").args[0]) - 1)
        assert flambeau.equal(x.grad, flambeau.autograd.grad(x.sin().exp().cos().sum(), x)[0])
    assert kept[1] == 1 < kept[0]


@pytest.mark.parametrize("partition", [0, 1])
def test_a_module_with_statistics_and_dropout(partition: int) -> None:
    flambeau.manual_seed(0)
    layers = flambeau.nn
    plain = layers.Sequential(layers.Linear(3, 4), layers.BatchNorm1d(4), layers.Dropout(0.5), layers.Linear(4, 1))
    other = copy.deepcopy(plain)
    compile = _functorch(flambeau)
    compiled = compile.aot_module(other, compile.nop, partition_fn=_partitions(flambeau)[partition])
    for seed in range(3):
        x = flambeau.randn(5, 3)
        for each in (plain, compiled):
            flambeau.manual_seed(seed)
            each(x).sum().backward()
    pairs = [*zip(plain.parameters(), other.parameters(), strict=True)]
    assert all(flambeau.equal(one.grad, two.grad) for one, two in pairs)
    assert all(flambeau.equal(one, two) for one, two in zip(plain.buffers(), other.buffers(), strict=True))


@differential
def test_functions_that_take_lists(torch: Any) -> Any:
    compile = _functorch(torch)
    boxed = compile.make_boxed_func(lambda x, y: [x + y])
    function = compile.aot_function(
        lambda x: (x * 2).sum(), compile.make_boxed_compiler(lambda graph, inputs: graph.forward)
    )
    x = torch.ones(3, requires_grad=True)
    function(x).backward()
    return boxed([torch.ones(2), torch.ones(2)])[0], boxed._boxed_call, x.grad


@differential
def test_decompositions(torch: Any) -> Any:
    decompositions = _module(torch, "_decomp")
    aten = torch.ops.aten
    table: dict[Any, Any] = {}

    @decompositions.register_decomposition(aten.sinh.default, table)
    def sinh(x: Any) -> Any:
        return (x.exp() - (-x).exp()) / 2

    names: list[str] = []

    def keeping(graph: Any, inputs: Any) -> Any:
        names.extend([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return _functorch(torch).make_boxed_func(graph.forward)

    function = _functorch(torch).aot_function(lambda x: x.sinh(), keeping, decompositions=table)
    result = function(torch.ones(2))
    before = sorted(map(str, table))
    decompositions.remove_decompositions(table, [aten.sinh])
    return result, "aten.sinh.default" in names, "aten.exp.default" in names, before, len(table)
