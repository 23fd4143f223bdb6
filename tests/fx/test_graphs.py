"""Graphs and what is done to them: under both libraries the same code, the same text, the same results."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import threading
from typing import Any

import pytest

import flambeau
from flambeau import fx, nn

from ..support.differential import differential, outcome


def _small(T: Any) -> Any:
    class Small(T.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self):  # type: ignore[no-untyped-def]
            super().__init__()
            self.linear = T.nn.Linear(4, 4)
            self.scale = T.nn.Parameter(T.ones(4))
            self.register_buffer("shift", T.arange(4.0))

        def forward(self, x, factor=2):  # type: ignore[no-untyped-def]
            hidden = T.relu(self.linear(x) * self.scale + self.shift)
            first, second = hidden.chunk(2, dim=-1)
            return {"sum": first + second * factor, "parts": (first, T.cat([first, second], dim=1))}

    return Small()


@differential
def test_module(T: Any) -> Any:
    model = _small(T)
    traced = T.fx.symbolic_trace(model)
    x = T.ones(2, 4)
    names = [node.name for node in traced.graph.nodes]
    users = {node.name: [user.name for user in node.users] for node in traced.graph.nodes}
    return traced.code, str(traced.graph), names, users, traced(x), sorted(traced.state_dict()), str(traced)


@differential
def test_values_cannot_be_looked_at(T: Any) -> Any:
    def loops(x: Any) -> Any:
        return [each for each in x]  # noqa: C416

    def decides(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    def counts(x: Any) -> Any:
        return len(x)

    def unpacks(x: Any) -> Any:
        first, second = x
        return first + second

    return [outcome(functools.partial(T.fx.symbolic_trace, each)) for each in (loops, decides, counts)], (
        T.fx.symbolic_trace(unpacks).code
    )


@differential
def test_concrete_arguments(T: Any) -> Any:
    def switched(x, flag, values):  # type: ignore[no-untyped-def]
        total = values["a"] + values["b"][0]
        return {"out": x + total if flag else x - total}

    places = {"flag": True, "values": {"a": T.fx.PH, "b": [T.fx.PH]}}
    traced = T.fx.symbolic_trace(switched, concrete_args=places)
    return traced.code, traced(T.ones(2), True, {"a": 1, "b": [2]})


@differential
def test_built_by_hand(T: Any) -> Any:
    graph = T.fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=3)
    total = graph.call_function(operator.add, (x, y))
    unused = graph.call_function(T.neg, (total,))
    with graph.inserting_before(total):
        negated = graph.call_method("neg", (x,))
    total.replace_input_with(x, negated)
    graph.output(total)
    module = T.fx.GraphModule({}, graph)
    before = module.code
    changed = graph.eliminate_dead_code()
    module.recompile()
    found = [node.name for node in graph.find_nodes(op="call_function", target=operator.add)]
    return before, changed, unused._erased, module.code, module(T.ones(2)), found, negated < total


@differential
def test_wrong_graphs(T: Any) -> Any:
    graph = T.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(T.relu, (x,))
    graph.output(y)
    other = T.fx.Graph()
    stranger = other.placeholder("z")
    refused = [
        outcome(lambda: graph.erase_node(x), "still had 1 users"),
        outcome(lambda: graph.create_node("call_function", "text"), "but a Callable is expected"),
        outcome(lambda: x.args.append(1)),
    ]
    y.args = (stranger,)
    return [*refused, outcome(graph.lint, "does not belong to this Graph")]


@differential
def test_rewriting(T: Any) -> Any:
    def program(x: Any, w: Any) -> Any:
        return T.relu(x + w).sum() + T.relu(w + x)

    traced = T.fx.symbolic_trace(program)
    matches = T.fx.replace_pattern(traced, lambda a, b: T.relu(a + b), lambda a, b: T.sigmoid(a) * b)
    traced.graph.lint()
    return len(matches), traced.code, traced(T.ones(2), 2 * T.ones(2))


@differential
def test_filtered_rewriting(T: Any) -> Any:
    rewriter = T.fx.subgraph_rewriter if hasattr(T.fx, "subgraph_rewriter") else None

    def program(x: Any) -> Any:
        return T.add(T.add(x, 1), 2)

    def only_twos(match: Any, graph: Any, pattern: Any) -> bool:
        return any(2 in node.args for node in match.nodes_map.values())

    traced = T.fx.symbolic_trace(program)
    replaced = rewriter.replace_pattern_with_filters(
        traced, lambda x: T.add(x, 5), lambda x: T.mul(x, 7), [only_twos], ignore_literals=True
    )
    return len(replaced), [node.name for node in replaced[0].replacements], traced.code


@differential
def test_interpreters(T: Any) -> Any:
    class Swap(T.fx.Transformer):  # type: ignore[name-defined, misc]
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(T.tanh if target is T.relu else target, args, kwargs)

    class Log(T.fx.Interpreter):  # type: ignore[name-defined, misc]
        def run_node(self, n: Any) -> Any:
            seen.append(n.name)
            return super().run_node(n)

    seen: list[str] = []
    traced = T.fx.symbolic_trace(_small(T))
    result = Log(traced).run(T.ones(2, 4))
    swapped = Swap(traced).transform()
    return seen, result, swapped.code, swapped(T.ones(2, 4))


def test_errors_name_the_node_that_ran() -> None:
    """As in PyTorch, which imports its compiler for such a message: that takes seconds, so it is not asked here."""
    traced = fx.symbolic_trace(_small(flambeau))
    with pytest.raises(RuntimeError, match="While executing %linear"):
        fx.Interpreter(traced).run(flambeau.ones(2, 5))


@differential
def test_copies(T: Any) -> Any:
    traced = T.fx.symbolic_trace(_small(T))
    traced.eval()
    copied, again = copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))
    x = T.ones(2, 4)
    same = [T.equal(each(x)["sum"], traced(x)["sum"]) for each in (copied, again)]
    return same, [each.code for each in (copied, again)], copied.training, copied.linear is not traced.linear


@differential
def test_submodules(T: Any) -> Any:
    traced = T.fx.symbolic_trace(_small(T))
    added = traced.add_submodule("a.b", T.nn.ReLU()), traced.add_submodule("scale.x", T.nn.ReLU())
    names = [name for name, _ in traced.named_modules()]
    deleted = traced.delete_submodule("a.b"), traced.delete_submodule("nothing")
    traced.delete_all_unused_submodules()
    return added, names, deleted, [name for name, _ in traced.named_modules()]


@differential
def test_code_is_changed(T: Any) -> Any:
    traced = T.fx.symbolic_trace(lambda x: x + 1)
    with traced.graph.on_generate_code(lambda before: lambda body: ["x = x * 10\n", *body]):
        traced.recompile()
        changed = traced.code, traced(2)
    traced.recompile()
    return changed, traced.code, traced.print_readable(print_output=False)


@differential
def test_own_leaves(T: Any) -> Any:
    class Whole(T.fx.Tracer):  # type: ignore[name-defined, misc]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return False

    class Nothing(T.fx.Tracer):  # type: ignore[name-defined, misc]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    model = T.nn.Sequential(T.nn.Sequential(T.nn.Dropout(0.5), T.nn.ReLU()), T.nn.MaxPool2d(2))
    whole = T.fx.GraphModule(model, Whole().trace(model))
    return whole.code, T.fx.GraphModule(model, Nothing().trace(model)).code


def test_other_threads_are_not_recorded() -> None:
    """While one thread traces, modules of others run as usual; traces of two threads do not mix."""
    inside, go_on = threading.Event(), threading.Event()
    seen: dict[str, Any] = {}

    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            inside.set()
            assert go_on.wait(60)
            return self.second(x)

    def trace() -> None:
        seen["graph"] = fx.symbolic_trace(Slow())

    def trace_too() -> None:
        seen["other"] = fx.symbolic_trace(nn.Sequential(nn.Tanh()))

    threads = [threading.Thread(target=each) for each in (trace, trace_too)]
    threads[0].start()
    assert inside.wait(60)
    threads[1].start()  # it waits for its turn
    layer = nn.Linear(2, 1)
    assert isinstance(layer.weight, nn.Parameter)
    assert layer(flambeau.ones(1, 2)).shape == (1, 1)
    assert not fx._symbolic_trace.is_fx_tracing()
    go_on.set()
    for each in threads:
        each.join(60)
    assert [node.target for node in seen["graph"].graph.nodes] == ["x", "first", "second", "output"]
    assert [node.target for node in seen["other"].graph.nodes] == ["input", "0", "output"]
    assert nn.Module.__call__.__qualname__ == "Module.__call__"


def test_assertions_are_traced_where_the_tracer_wants_it() -> None:
    class Tracer(fx.Tracer):
        trace_asserts = True

    names: dict[str, Any] = {}  # from text: pytest writes the assertions of its modules anew
    exec("def asserting(x):\n    assert x.sum() > 0, 'positive'\n    assert x.mean()\n    return x * 2\n", names)

    def deciding(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x

    graph = Tracer().trace(names["asserting"])
    assert [node.name for node in graph.nodes if node.target is fx.proxy.assert_fn] == ["assert_fn", "assert_fn_1"]
    module = fx.GraphModule(nn.Module(), graph)
    assert module(flambeau.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError):
        module(-flambeau.ones(2))
    with pytest.raises(fx.proxy.TraceError):
        Tracer().trace(deciding)
