"""Passes over graphs, under both libraries."""

from __future__ import annotations

import importlib
from typing import Any

from ..support.differential import differential, outcome


def _part(T: Any, name: str) -> Any:
    return importlib.import_module(f"{T.__name__}.fx.{name}")


def _model(T: Any) -> Any:
    nn = T.nn
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 3)
    )


@differential
def test_shapes(T: Any) -> Any:
    traced = T.fx.symbolic_trace(_model(T).eval())
    _part(T, "passes.shape_prop").ShapeProp(traced).propagate(T.ones(2, 1, 4, 4))
    known = [node.meta["tensor_meta"] for node in traced.graph.nodes]
    return [(each.shape, each.dtype, each.stride, each.requires_grad, str(each.memory_format)) for each in known]


@differential
def test_shapes_without_data(T: Any) -> Any:
    traced = T.fx.symbolic_trace(_model(T).eval())
    mode = T._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    _part(T, "passes.fake_tensor_prop").FakeTensorProp(traced, mode).propagate(T.ones(2, 1, 4, 4))
    return [(node.name, tuple(node.meta["val"].shape)) for node in traced.graph.nodes]


@differential
def test_split(T: Any) -> Any:
    class Program(T.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.scale = T.nn.Parameter(T.full((3,), 2.0))
            self.linear = T.nn.Linear(3, 3)

        def forward(self, x, y):  # type: ignore[no-untyped-def]
            z = self.linear(x) * self.scale
            w = T.relu(z) + y
            return w, z + 1

    numbers = iter((0, 0, 1, 1, 2))
    traced = T.fx.symbolic_trace(Program())
    split = _part(T, "passes.split_module").split_module(traced, traced, lambda node: next(numbers))
    x, y = T.ones(2, 3), T.ones(3)
    parts = [split.submod_0.code, split.submod_1.code, split.submod_2.code]
    return split.code, parts, split(x, y), [name for name, _ in split.named_parameters()]


@differential(tolerance=1e-5)
def test_fusion(T: Any) -> Any:
    model = _model(T).eval()
    model[1].running_mean.fill_(0.5)
    model[1].running_var.fill_(2.0)
    fused = _part(T, "experimental.optimization").fuse(model)
    without = _part(T, "experimental.optimization").remove_dropout(model)
    x = T.ones(1, 1, 4, 4)
    return fused.code, fused(x).detach(), (fused(x) - model(x)).abs().max().item() < 1e-5, without.code


@differential
def test_constants_are_folded(T: Any) -> Any:
    class Program(T.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = T.nn.Parameter(T.arange(6.0).reshape(2, 3))

        def forward(self, x):  # type: ignore[no-untyped-def]
            return x @ (self.weight.t() * 2)

    folded = _part(T, "experimental.const_fold").split_const_subgraphs(Program())
    return folded(T.ones(2, 3)).detach(), "_FX_CONST_FOLDED_ATTRS" in folded.code, "* 2" in folded.code


@differential
def test_pass_manager(T: Any) -> Any:
    base, manager = _part(T, "passes.infra.pass_base"), _part(T, "passes.infra.pass_manager")

    class Swap(base.PassBase):  # type: ignore[name-defined, misc]
        def call(self, graph_module: Any) -> Any:
            changed = False
            for node in graph_module.graph.find_nodes(op="call_function", target=T.relu):
                node.target, changed = T.tanh, True
            return base.PassResult(graph_module, changed)

    traced = T.fx.symbolic_trace(lambda x: T.relu(x))
    first = manager.PassManager([Swap()])(traced)
    second = manager.PassManager([Swap()])(traced)
    return first.modified, second.modified, "tanh(" in traced.code


@differential
def test_support(T: Any) -> Any:
    support, tools = _part(T, "passes.operator_support"), _part(T, "passes.tools_common")
    traced = T.fx.symbolic_trace(_model(T))
    modules = dict(traced.named_modules())
    asked = support.OperatorSupport({"torch.nn.modules.linear.Linear": None})
    calls = [node for node in traced.graph.nodes if node.op == "call_module"]
    return [asked.is_node_supported(modules, node) for node in calls], len(
        tools.get_node_target(modules, calls[-1])
    ) > 5


@differential
def test_drawer_needs_its_package(T: Any) -> Any:
    traced = T.fx.symbolic_trace(lambda x: x + 1)
    return outcome(lambda: _part(T, "passes.graph_drawer").FxGraphDrawer(traced, "name"), "requires the pydot package")
