"""Backends by name: registered, chosen, listed, and those that count and keep graphs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from flambeau.compiler import _registry


def _names(module: str) -> Any:
    return importlib.import_module(f"flambeau._dynamo.{module}")


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_registry, "_BY_NAME", dict(_registry._BY_NAME))
    monkeypatch.setattr(_registry, "_DEFAULT", list(_registry._DEFAULT))
    yield
    flambeau.compiler.reset()


def _call_often(function: Any) -> Any:
    for _ in range(4):
        result = function(flambeau.ones(3))
    return result


def test_a_backend_is_found_by_its_name() -> None:
    graphs: list[Any] = []

    @flambeau._dynamo.register_backend
    def kept(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    assert "kept" in flambeau.compiler.list_backends()
    assert flambeau._dynamo.lookup_backend("kept") is kept
    assert flambeau.equal(_call_often(flambeau.compile(lambda x: x + 1, backend="kept")), flambeau.full((3,), 2.0))
    assert len(graphs) == 1
    with pytest.raises(AssertionError, match="duplicate name: kept"):
        flambeau._dynamo.register_backend(kept)


def test_tags_leave_backends_out_of_the_list() -> None:
    registry = _names("backends.registry")
    registry.register_debug_backend(lambda graph, inputs: graph.forward, name="watching")
    assert "watching" not in flambeau.compiler.list_backends()
    assert {"watching", "eager", "aot_eager"} <= set(flambeau.compiler.list_backends(None))
    assert "watching" in flambeau.compiler.list_backends(exclude_tags=("experimental",))


def test_the_default_backend_is_the_one_that_runs() -> None:
    graphs: list[Any] = []
    flambeau.compiler.set_default_backend(lambda graph, inputs: graphs.append(graph) or graph.forward)
    _call_often(flambeau.compile(lambda x: x + 1))
    assert len(graphs) == 1
    with pytest.raises(flambeau._dynamo.exc.InvalidBackend, match="Invalid backend: 'nothing'"):
        flambeau.compiler.set_default_backend("nothing")


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor"])
def test_a_training_loop_by_each_backend(name: str) -> None:
    results = []
    for backend in (None, name):
        flambeau.manual_seed(0)
        model = flambeau.nn.Sequential(flambeau.nn.Linear(3, 4), flambeau.nn.BatchNorm1d(4), flambeau.nn.Linear(4, 1))
        optimizer = flambeau.optim.AdamW(model.parameters())
        called = model if backend is None else flambeau.compile(model, backend=backend)
        for _ in range(5):
            loss = called(flambeau.randn(6, 3)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        results.append([*model.state_dict().values(), loss.detach()])
    assert all(flambeau.equal(one, two) for one, two in zip(*results, strict=True))


def test_backends_that_count_and_keep() -> None:
    testing = _names("testing")
    counter, keeper, both = testing.CompileCounter(), testing.EagerAndRecordGraphs(), testing.AotEagerAndRecordGraphs()
    for backend in (counter, keeper, both):
        function = flambeau.compile(lambda x: x.sin() + 1, backend=backend)
        for _ in range(4):
            x = flambeau.ones(3, requires_grad=True)
            function(x).sum().backward()
            assert x.grad is not None
            assert flambeau.equal(x.grad, x.detach().cos())
    assert (counter.frame_count, counter.op_count, len(counter.graphs)) == (1, 2, 1)
    counter.clear()
    assert (counter.frame_count, counter.op_count) == (0, 0)
    assert len(keeper.graphs) == 1
    assert (len(both.graphs), len(both.fw_graphs), len(both.bw_graphs)) == (1, 1, 1)


def test_alike_results() -> None:
    same = _names("utils").same
    x = flambeau.arange(3.0)
    assert same([x, {"a": x}], (x + 1e-6, {"a": x}))
    assert not same([x], [x + 1])
    assert not same(x, x.double())
    assert same(x, x.double(), exact_dtype=False)
    assert same(x, x + 1, fp64_ref=x.double() + 0.5)
    assert not same(x, x + 9, fp64_ref=x.double() + 0.5)
    assert same(x, 3 * x + 1e-3, cos_similarity=True)


def test_logs_are_chosen_by_a_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from flambeau.compiler import _logs

    monkeypatch.setattr(_logs, "_CHOSEN", [])
    function = flambeau.compile(lambda x: x + 1)
    flambeau._logging.set_logs(output_code=True)
    _call_often(function)
    assert "[__output_code]" in capsys.readouterr().err
    flambeau._logging.set_logs()
    _call_often(flambeau.compile(lambda x: x + 2))
    assert capsys.readouterr().err == ""
