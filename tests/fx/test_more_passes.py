"""Passes over graphs that few programs call, beside PyTorch's."""

from __future__ import annotations

import importlib
import logging
import operator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def module(T: Any, name: str) -> Any:
    return importlib.import_module(f"{T.__name__}.fx.{name}")


def traced(T: Any) -> Any:
    """A small network with two branches."""

    class Network(T.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = T.nn.Linear(4, 4)
            self.scale = T.nn.Parameter(T.ones(4))

        def forward(self, x: Any) -> Any:
            a = self.first(x).relu()
            b = T.sigmoid(x) * self.scale
            return a + b, b.sum()

    T.manual_seed(0)
    return T.fx.symbolic_trace(Network())


def nodes(graph: Any) -> list[tuple[str, str, list[str]]]:
    return [(each.op, each.name, [str(arg) for arg in each.all_input_nodes]) for each in graph.nodes]


@differential
def test_managers_of_passes(T: Any) -> Any:
    passes = module(T, "passes.pass_manager")

    def add(values: Any) -> Any:
        return [*values, "add"]

    def append(values: Any) -> None:
        values.append("append")

    inplace = passes.inplace_wrapper(append)
    manager = passes.PassManager([add, inplace])
    manager.add_pass(passes.loop_pass(add, n_iter=2))
    manager.add_constraint(passes.this_before_that_pass_constraint(add, inplace))
    result = manager([])
    manager.remove_pass(["append"])
    shorter = manager([])
    manager.replace_pass(add, passes.loop_pass(add, predicate=lambda values: len(values) < 5))
    wrong = passes.PassManager([inplace, add], [passes.these_before_those_pass_constraint(add, append)])
    return (
        (result, shorter, manager([]), passes.PassManager.build_from_passlist([add])([1])),
        outcome(wrong.validate, "pass schedule constraint violated"),
        outcome(lambda: passes.loop_pass(add), "Exactly one of"),
        passes.log_hook(add, logging.DEBUG)([]),
    )


@differential
def test_types_of_values(T: Any) -> Any:
    types = module(T, "tensor_type")
    made = types.TensorType((1, types.Dyn, 3))
    known = types.TensorType((1, 2, 3))

    def annotated(x: Any) -> Any:
        return module(T, "annotate").annotate(x * 2, T.Tensor).relu()

    graph = T.fx.symbolic_trace(annotated).graph
    return (
        (repr(made), repr(types.Dyn), made.dims, made == types.TensorType([1, types.Dyn, 3])),
        [types.is_consistent(*each) for each in ((made, known), (known, types.TensorType((1, 2))), (3, types.Dyn))],
        [types.is_more_precise(*each) for each in ((known, made), (made, known), (3, types.Dyn))],
        [getattr(each.type, "__name__", None) for each in graph.nodes if each.op == "call_function"],
        module(T, "annotate").annotate(3, int),
    )


@differential
def test_types_of_elements(T: Any) -> Any:
    graph = T.fx.Graph()
    x = graph.placeholder("x", type_expr=tuple[int, str])
    y = graph.placeholder("y", type_expr=list[float])
    first = graph.call_function(operator.getitem, (x, 1))
    second = graph.call_function(operator.getitem, (y, 0))
    graph.output((first, second))
    module(T, "passes.annotate_getitem_nodes").annotate_getitem_nodes(graph)
    return first.type, second.type


@differential
def test_sizes_of_nodes(T: Any) -> Any:
    passes = module(T, "passes.graph_manipulation")
    gm = traced(T)
    error = outcome(lambda: passes.get_tensor_meta(next(iter(gm.graph.nodes))), "no tensor metadata")
    passes.get_size_of_all_nodes(gm, [T.ones(2, 4)])
    sizes = {each.name: tuple(each.size_bytes) for each in gm.graph.nodes if hasattr(each, "size_bytes")}
    passes.replace_target_nodes_with(gm, "call_function", T.sigmoid, "call_function", T.tanh)
    gm.recompile()
    return sizes, error, gm(T.ones(2, 4))[1].detach(), [each.name for each in gm.graph.nodes]


@differential
def test_parts_as_modules(T: Any) -> Any:
    fuser = module(T, "passes.utils.fuser_utils")
    gm = traced(T)
    x = T.randn(2, 4)
    expected = [each.detach() for each in gm(x)]
    by_name = {each.name: each for each in gm.graph.nodes}
    chosen = [by_name[name] for name in ("mul", "sigmoid")]
    ordered = fuser.topo_sort(chosen)
    cyclic = [by_name[name] for name in ("sigmoid", "add")]
    valid = fuser.validate_partition(ordered), fuser.validate_partition(cyclic)
    fused = fuser.fuse_by_partitions(gm, [dict.fromkeys(chosen)])
    return (
        [each.name for each in ordered],
        valid,
        nodes(fused.graph),
        nodes(fused.fused_0.graph),
        [bool(T.equal(*pair)) for pair in zip(expected, fused(x), strict=True)],
    )


@differential
def test_groups_that_are_supported(T: Any) -> Any:
    partitioner = module(T, "passes.infra.partitioner")
    base: Any = module(T, "passes.operator_support").OperatorSupportBase

    class Support(base):  # type: ignore[misc]
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return node.name in ("relu", "add", "sigmoid", "mul")

    gm = traced(T)
    x = T.randn(2, 4)
    expected = [each.detach() for each in gm(x)]
    made = partitioner.CapabilityBasedPartitioner(gm, Support(), allows_single_node_partition=True)
    groups = made.propose_partitions()
    names = sorted(sorted(node.name for node in each.nodes) for each in groups)
    fused = made.fuse_partitions(groups)
    part = partitioner.Partition(3, [], None)
    node = next(iter(gm.graph.nodes))
    part.add_node(node)
    sizes = [part.size()]
    part.remove_node(node)
    return (
        names,
        [bool(T.allclose(*pair)) for pair in zip(expected, fused(x), strict=True)],
        [*sizes, part.size(), part.id],
    )


@differential
def test_modules_by_tags(T: Any) -> Any:
    split = module(T, "passes.split_utils")
    gm = traced(T)
    x = T.randn(2, 4)
    expected = [each.detach() for each in gm(x)]
    for node in gm.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            node.tag = "right" if node.name in ("sigmoid", "mul") else "left"
    made = split.split_by_tags(gm, ["right", "left"])
    split.setattr_recursive(made, "left.first.bias.data", T.zeros(4))
    return (
        nodes(made.graph),
        [each for each, _ in made.named_children()],
        [tuple(each.shape) for each in made(x)],
        [bool(T.equal(made(x)[1], expected[1]))],
        split.getattr_recursive(made, "left.first.weight").shape,
    )


@differential
def test_equal_calls_once(T: Any) -> Any:
    common = module(T, "passes.dialect.common.cse_pass")

    aten = T.ops.aten
    graph = T.fx.Graph()
    given = graph.placeholder("x")
    parts = [
        graph.call_function(each.default, (given,)) for each in (aten.sin, aten.sin, aten.rand_like, aten.rand_like)
    ]
    parts[2:] = [graph.call_function(aten.mul.Tensor, (each, 0)) for each in parts[2:]]
    total = parts[0]
    for each in parts[1:]:
        total = graph.call_function(aten.add.Tensor, (total, each))
    graph.output(total)
    gm = T.fx.GraphModule(T.nn.Module(), graph)
    result = common.CSEPass(banned_ops=common.get_CSE_banned_ops())(gm)
    again = common.CSEPass()(result.graph_module)
    x = T.randn(3)
    return (
        (result.modified, again.modified),
        [str(each.target) for each in result.graph_module.graph.nodes],
        bool(T.equal(result.graph_module(x), gm(x))),
    )


@differential
def test_products_with_one_operand(T: Any) -> Any:
    merge = module(T, "experimental.merge_matmul")

    def function(x: Any, y: Any, right: Any) -> Any:
        return T.matmul(x, right) + 1, T.matmul(y, right)

    class Holder(T.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any, y: Any, right: Any) -> Any:
            return function(x, y, right)

    made = merge.merge_matmul(Holder())
    x, y, right = T.arange(6.0).reshape(2, 3), T.ones(1, 3), T.arange(12.0).reshape(3, 4)
    graph = T.fx.symbolic_trace(Holder()).graph
    products = [each for each in graph.nodes if each.target is T.matmul]
    return (
        [each.name for each in made.graph.nodes],
        made(x, y, right),
        function(x, y, right),
        merge.split_result_tensors(T.arange(6.0).reshape(3, 2), [x, y]),
        (merge.are_nodes_independent(products), merge.may_depend_on(products[0], products[1])),
    )


@differential
def test_questions_about_sizes(T: Any) -> Any:
    shapes = module(T, "experimental.symbolic_shapes")
    return (
        [shapes.is_concrete_int(4), shapes.is_concrete_float(2.0), shapes.is_concrete_bool(True)],
        [shapes.has_static_value(3), shapes.is_nested_int(3), shapes.statically_known_false(False)],
        [shapes.sym_and(True, True, False), shapes.sym_or(False, True), shapes.sym_eq([1, (2, 3)], [1, (2, 3)])],
        [shapes.sym_eq([1], [1, 2]), shapes.create_contiguous([2, 3, 4]), shapes.create_contiguous([5])],
        (shapes.guarding_hint_or_throw(3), shapes.optimization_hint(4)),
        (shapes.has_symbolic_sizes_strides(T.ones(2)), len(shapes.free_symbols([3, 4]))),
        shapes.check_consistent(T.ones(2), T.zeros(2)),
        outcome(lambda: shapes.check_consistent(T.ones(2), T.zeros(3))),
        (shapes.SymIntEqByExpr(3) == shapes.SymIntEqByExpr(3), repr(shapes.SymIntEqByExpr(3))),
    )


@differential
def test_what_is_being_run(T: Any) -> Any:
    traceback = module(T, "traceback")
    node = T.fx.Graph().placeholder("x")
    with traceback.set_current_replay_node(node):
        inside = traceback.get_current_replay_node() is node
    with traceback.preserve_node_meta():
        traceback.set_grad_fn_seq_nr(3)
        traceback.set_grad_fn_seq_nr(5)
        meta = dict(traceback.current_meta)
        traceback.reset_grad_fn_seq_nr()
        traceback.reset_grad_fn_seq_nr()
        after = dict(traceback.current_meta)
    return inside, traceback.get_current_replay_node(), meta["grad_fn_seq_nr"], after


def test_matches_with_names() -> None:
    matcher = module(flambeau, "passes.utils.matcher_with_name_node_map_utils")

    def pattern(x: Any, y: Any) -> Any:
        total = x + y
        return total.relu(), {"sum": total}

    def function(a: Any, b: Any) -> Any:
        return (a + b).relu() * 2

    found = matcher.SubgraphMatcherWithNameNodeMap(flambeau.fx.symbolic_trace(pattern)).match(
        flambeau.fx.symbolic_trace(function).graph
    )
    assert [each.name_node_map["sum"].name for each in found] == ["add"]


def test_groups_by_source() -> None:
    source = module(flambeau, "passes.utils.source_matcher_utils")
    gm = traced(flambeau)
    for node in gm.graph.nodes:
        if node.name in ("first", "relu"):
            node.meta["source_fn_stack"] = [("block", "Block")]
        elif node.name == "add":
            node.meta["source_fn_stack"] = [("add", operator.add)]
    found = source.get_source_partitions(gm.graph, ["Block", operator.add])
    block, add = found["Block"][0], found[operator.add][0]
    assert [each.name for each in block.nodes] == ["first", "relu"]
    assert [each.name for each in block.input_nodes] == ["x"]
    assert [each.name for each in block.output_nodes] == ["relu"]
    assert source.check_subgraphs_connected(block, add)
    assert not source.check_subgraphs_connected(add, block)
    assert not source.get_source_partitions(gm.graph, ["Block"], filter_fn=lambda node: False)
    with pytest.raises(AttributeError):
        _ = block.nothing
