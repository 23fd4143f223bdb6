"""What users say to `compile`: backends, modes, options, stances, and modules that are compiled in their place."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn

from .test_never_stale import X, seen


def test_choices_that_there_are_not() -> None:
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="Invalid backend: 'nope'"):
        torch.compile(torch.relu, backend="nope")
    with pytest.raises(RuntimeError, match="Unrecognized mode=nope"):
        torch.compile(torch.relu, mode="nope")
    with pytest.raises(RuntimeError, match="Unexpected optimization option nope"):
        torch.compile(torch.relu, options={"nope": 1})
    with pytest.raises(RuntimeError, match="got int should be bool"):
        torch.compile(torch.relu, options={"max_autotune": 1})
    with pytest.raises(RuntimeError, match="but both"):
        torch.compile(torch.relu, mode="default", options={})
    assert torch.compile(torch.relu, mode="max-autotune")(X).tolist() == X.tolist()
    assert torch.compile(torch.relu, options={"max_autotune": True})(X).tolist() == X.tolist()


def test_a_backend_is_given_a_graph_and_examples() -> None:
    given: list[tuple[Any, Any]] = []

    def backend(graph: Any, examples: Any) -> Any:
        given.append((graph, [tuple(each.shape) for each in examples]))
        return graph.forward

    layer = nn.Linear(3, 2)
    scale = [2.0]

    @torch.compile(backend=backend)
    def f(x: Any, more: Any = None) -> Any:
        return {"a": (layer(x) * scale[0]).relu(), "b": [x + 1 if more is None else x + more["y"]]}

    def plain(x: Any, more: Any = None) -> Any:
        return {"a": (layer(x) * scale[0]).relu(), "b": [x + 1 if more is None else x + more["y"]]}

    for turn in range(12):
        x = X + turn
        assert seen(f(x)) == seen(plain(x))
        assert seen(f(x, {"y": X})) == seen(plain(x, {"y": X}))
        if turn == 8:
            scale[0] = 3.0
    assert len(given) >= 3
    graph, shapes = given[0]
    assert isinstance(graph, torch.fx.GraphModule)
    assert any("linear" in str(each.target) or "addmm" in str(each.target) for each in graph.graph.nodes)
    assert shapes[0] == (2, 3)


def test_gradients_and_random_numbers_through_a_backend() -> None:
    layer = nn.Linear(3, 2)

    def run(compile: Any) -> Any:
        torch.manual_seed(0)
        f = compile(lambda x: nn.functional.dropout(layer(x), 0.5).square().sum())
        found = []
        for _ in range(6):
            layer.zero_grad()
            loss = f(X)
            loss.backward()
            found.append(seen([loss, layer.weight.grad]))
        return found, torch.rand(2).tolist()

    made = torch.compile(backend=lambda graph, examples: graph)
    assert run(made) == run(lambda each: each)


def test_stances() -> None:
    f = torch.compile(lambda x: x * 2)
    for _ in range(4):
        f(X)
    other = X[:1]
    with torch.compiler.set_stance("fail_on_recompile"):
        assert seen(f(X)) == seen(X * 2)
        with pytest.raises(RuntimeError, match=r"Detected recompile when torch.compile stance is 'fail_on_recompile'"):
            f(other)
    with torch.compiler.set_stance("eager_on_recompile"):
        for _ in range(5):
            assert seen(f(other)) == seen(other * 2)
    assert torch.compiler.explain(f).startswith("1 program,")

    @torch.compiler.set_stance("force_eager")
    def call() -> Any:
        return f(X)

    assert seen(call()) == seen(X * 2)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert seen(call()) == seen(X * 2)
    with pytest.raises(RuntimeError, match=r"invalid torch.compile stance"):
        torch.compiler.set_stance("sitting")
    assert seen(f(other)) == seen(other * 2)


def test_modules_compiled_in_their_place() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    expected = seen(model(X))
    model.compile()
    for _ in range(5):
        assert seen(model(X)) == expected
    assert torch.compiler.explain(model.forward.run).startswith("1 program,")
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad():
            other[0].weight.zero_()
            other[0].bias.fill_(2)
        for _ in range(5):
            assert other(X).tolist() == [[2.0] * 4] * 2
    assert seen(model(X)) == expected


def test_sizes_that_are_marked() -> None:
    f = torch.compile(lambda x: x * 2 + 1)
    x = torch.ones(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    for _ in range(4):
        f(x)
    for length in range(2, 30):
        assert f(torch.ones(length, 4)).sum().item() == length * 12
    assert torch.compiler.explain(f).startswith("1 program,")


def test_reset_forgets_under_both_names() -> None:
    for reset in (torch.compiler.reset, torch._dynamo.reset):
        f = torch.compile(lambda x: x * 2)
        for _ in range(4):
            f(X)
        assert torch.compiler.explain(f).startswith("1 program,")
        reset()
        assert torch.compiler.explain(f).startswith("0 programs,")
