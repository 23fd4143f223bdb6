"""What users say to `compile`: backends, modes, options, stances, and modules that are compiled in their place."""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler.capture import effort
from tests.support.differential import differential

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


@differential
def test_filters_of_guards(torch: Any) -> Any:
    def entry(kind: str, value: Any = None, is_global: bool = False, in_module: str = "") -> Any:
        source = SimpleNamespace(
            is_unspecialized_nn_module=lambda: bool(in_module),
            is_unspecialized_builtin_nn_module=lambda: in_module == "torch",
        )
        return SimpleNamespace(
            name="x",
            guard_type=kind,
            derived_guard_types=(kind,),
            has_value=value is not None,
            value=value,
            is_global=is_global,
            orig_guard=SimpleNamespace(source=source),
        )

    weight = torch.nn.Parameter(torch.ones(2))
    entries = [
        entry("TENSOR_MATCH", torch.ones(2)),
        entry("TENSOR_MATCH", weight, True, "torch"),
        entry("TENSOR_MATCH", weight, True, "own"),
        entry("ID_MATCH", weight, True),
        entry("CONSTANT_MATCH", 2.0),
        entry("SHAPE_ENV"),
        entry("GLOBAL_STATE"),
        entry("GRAD_MODE"),
    ]
    names = (
        "keep_portable_guards_unsafe keep_tensor_guards_unsafe skip_all_guards_unsafe skip_guard_on_globals_unsafe "
        "skip_guard_on_all_nn_modules_unsafe skip_guard_on_inbuilt_nn_modules_unsafe"
    )
    found = {name: list(getattr(torch.compiler, name)(entries)) for name in names.split()}
    return found, list(torch.compiler.keep_tensor_guards_unsafe(entries, keep_parameters=True))


def test_checks_stay_whatever_a_filter_says() -> None:
    scale = [2.0]
    f = torch.compile(lambda x: x * scale[0], options={"guard_filter_fn": torch.compiler.skip_all_guards_unsafe})
    for _ in range(4):
        assert seen(f(X)) == seen(X * 2)
    scale[0] = 3.0
    assert seen(f(X)) == seen(X * 3)
    with pytest.raises(TypeError, match="guard_filter_fn"):
        torch.compile(torch.relu, options={"guard_filter_fn": 1})


@differential
def test_compiled_code_knows_that_it_is(torch: Any) -> Any:
    given = {"backend": "eager"} if torch.__name__ == "torch" else {}  # PyTorch's own backend needs a C++ compiler
    compiler = torch.compiler

    def told(x: Any) -> Any:
        return x + 1 if compiler.is_compiling() else x - 1

    def ways(x: Any) -> Any:
        return x + 10 * compiler.is_dynamo_compiling() + 100 * torch._dynamo.is_compiling()

    @compiler.disable
    def left_alone(x: Any) -> Any:
        return told(x)

    def in_parts(x: Any) -> Any:
        y = told(x)
        print(end="")
        return told(y)

    def raising(x: Any) -> Any:
        raise ValueError(told(x))

    module = torch.nn.Module()
    module.forward = told
    functions = [told, ways, lambda x: left_alone(x) * 2, in_parts, module]
    compiled = [torch.compile(each, **given) for each in functions]
    compiled += [torch.compile(told, backend="eager"), torch.compile(told, disable=True)]
    x = torch.ones(2)
    found = [[each(x) for _ in range(12)] for each in compiled]
    with compiler.set_stance("force_eager"):
        found.append([compiled[0](x)])
    with pytest.raises(ValueError, match="2"):
        torch.compile(raising, **given)(x)
    return [*found, compiler.is_compiling(), told(x)]


def test_steps_of_optimizers_know_it_in_every_call() -> None:
    known: list[bool] = []

    class Descent(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

        def step(self, closure: Any = None) -> None:
            known.append(torch.compiler.is_compiling())
            with torch.no_grad():
                for each in self.param_groups[0]["params"]:
                    each -= 0.1 * each.grad

    layer = nn.Linear(3, 2)
    optimizer = Descent(layer.parameters())

    @torch.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(6):
        step(torch.ones(4, 3))
    assert known == [True] * 6


@differential
def test_a_compiled_function_in_a_file(torch: Any) -> Any:
    import tempfile

    compiled = torch.compile(lambda x, y: (x @ y).relu() * 2, fullgraph=True, backend="eager")
    x = torch.linspace(-1, 1, 6)
    ahead = compiled.aot_compile(((x.reshape(2, 3), x.reshape(3, 2)), {}))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/function"
        ahead.save_compiled_function(path)
        with open(path, "rb") as file:
            loaded = torch.compiler.load_compiled_function(file)
    other = x + 0.5
    return [each(other.reshape(2, 3), x.reshape(3, 2)) for each in (ahead, loaded)]


_ELSEWHERE = """
import sys
import flambeau as torch
from flambeau._codegen.machine.engine import Engine

info = torch.compiler.load_cache_artifacts(sys.stdin.buffer.read())
written = []
compile = Engine.compile
Engine.compile = lambda self, module: written.append(module.name) or compile(self, module)
torch.ones(5000).exp()
print(len(info.artifacts["kernel"]), "pointwise_flat" in written)
"""


def test_machine_code_taken_to_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.ones(5000).exp()
    content, info = torch.compiler.save_cache_artifacts()
    assert not info.empty()
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "new"))
    found = subprocess.run([sys.executable, "-c", _ELSEWHERE], input=content, capture_output=True, check=True)
    assert found.stdout.decode().split() == [str(len(info.inductor_artifacts)), "False"]
    assert len([*(tmp_path / "new").iterdir()]) >= len(info.inductor_artifacts)
    assert torch.compiler.load_cache_artifacts(content[:-9]) is None


def test_functions_that_are_not_looked_into() -> None:
    seen_by_them: list[Any] = []

    def logged(x: Any) -> Any:
        seen_by_them.append(len(seen_by_them))
        return x * 2

    def setting() -> float:
        seen_by_them.append("setting")
        return 3.0

    assert torch.compiler.allow_in_graph(logged) is logged
    assert torch.compiler.assume_constant_result(setting) is setting
    f = torch.compile(lambda x: logged(x + 1) * setting(), fullgraph=True)
    for turn in range(6):
        assert seen(f(X + turn)) == seen((X + turn + 1) * 2 * 3)
    assert seen_by_them == [0, "setting", 2, "setting"]  # while it ran as it stands
    assert [*torch.compiler.allow_in_graph([logged])] == [logged]


def test_breaks_that_are_asked_for() -> None:
    dynamo = importlib.import_module("flambeau._dynamo")

    def f(x: Any) -> Any:
        y = x * 2 + 1
        dynamo.graph_break()
        return y.relu() - x

    g = torch.compile(f)
    for turn in range(8):
        assert seen(g(X + turn)) == seen(f(X + turn))
    explained = torch.compiler.explain(g)
    assert len(explained.programs) == 2
    assert "graph_break runs, which is not to be compiled" in explained.reasons[0]
    whole = torch.compile(f, fullgraph=True)
    with pytest.raises(RuntimeError, match="graph_break runs"):
        whole(X)
    calls: list[int] = []

    def left(x: Any) -> Any:
        calls.append(1)
        return x * 3

    assert dynamo.disallow_in_graph(left) is left
    g = torch.compile(lambda x: left(x + 1) * 2)
    for _ in range(8):
        assert seen(g(X)) == seen((X + 1) * 6)
    assert len(calls) == 8


def test_breaks_that_are_errors_for_a_while() -> None:
    dynamo = importlib.import_module("flambeau._dynamo")

    def f(x: Any) -> Any:
        y = x + 1
        dynamo.graph_break()
        return y * 2

    g = torch.compile(f)
    for _ in range(3):
        with dynamo.error_on_graph_break(True), pytest.raises(dynamo.exc.Unsupported, match="graph_break runs"):
            g(X)
    for _ in range(6):
        assert seen(g(X)) == seen(f(X))
    assert len(torch.compiler.explain(g).programs) == 2

    @dynamo.error_on_graph_break(True)
    def strict(x: Any) -> Any:
        dynamo.graph_break()
        return x + 1

    @dynamo.error_on_graph_break(False)
    def lenient(x: Any) -> Any:
        dynamo.graph_break()
        return x + 1

    with pytest.raises(dynamo.exc.Unsupported, match="graph_break runs"):
        torch.compile(lambda x: strict(x) * 2)(X)
    g = torch.compile(lambda x: lenient(x) * 2)
    with dynamo.error_on_graph_break(True):
        for _ in range(6):
            assert seen(g(X)) == seen((X + 1) * 2)


def test_functions_that_are_forbidden() -> None:
    dynamo = importlib.import_module("flambeau._dynamo")
    real = pytest.importorskip("torch")

    def own(x: Any) -> Any:
        return x + 1

    for library in (dynamo, real._dynamo):
        assert library.forbid_in_graph(own) is own
        assert library.forbid_in_graph([own]) == [own]
        with pytest.raises(AssertionError, match="applies only to callables"):
            library.forbid_in_graph(3)
    for library, given in ((torch, X), (real, real.ones(2))):
        options = {} if library is torch else {"backend": "eager"}
        with pytest.raises(AssertionError, match="Attempt to trace forbidden callable"):
            library.compile(lambda x: own(x) * 2, **options)(given)
        assert library.compile(lambda x: x * 2, **options)(given).shape == given.shape
    assert own(X).shape == X.shape


def test_sizes_that_are_marked_with_limits() -> None:
    dynamo = importlib.import_module("flambeau._dynamo")
    real = pytest.importorskip("torch")
    for library, marks in ((torch, dynamo), (real, real._dynamo)):
        error = importlib.import_module(f"{library.__name__}.fx.experimental.symbolic_shapes").ConstraintViolationError
        options = {} if library is torch else {"backend": "eager"}
        x = library.ones(5, 3)
        marks.mark_dynamic(x, 0, min=2, max=4)
        with pytest.raises(error, match=r"5 not in range \[2, 4\]"):
            library.compile(lambda x: x * 2, **options)(x)
        x = library.ones(3, 3)
        marks.mark_dynamic(x, [0, 1], min=2, max=4)
        g = library.compile(lambda x: x * 2, **options)
        assert g(x).shape == (3, 3)
        assert g(library.ones(9, 3)).shape == (9, 3)
        marks.maybe_mark_dynamic(x, 1)


def test_functions_that_are_not_traced_strictly() -> None:
    dynamo = importlib.import_module("flambeau._dynamo")
    lines: list[str] = []

    @dynamo.nonstrict_trace
    def logged(x: Any) -> Any:
        lines.append(str(x.shape))
        return x.exp() * 2

    g = torch.compile(lambda x: logged(x + 1) + 1, fullgraph=True)
    for turn in range(6):
        assert seen(g(X + turn)) == seen((X + turn + 1).exp() * 2 + 1)
    assert len(lines) == 2
    with pytest.raises(AssertionError, match="nonstrict_trace expects a callable"):
        dynamo.nonstrict_trace(3)
    real = pytest.importorskip("torch")._dynamo
    with pytest.raises(AssertionError, match="nonstrict_trace expects a callable"):
        real.nonstrict_trace(3)
    missing = [each for each in ("nonstrict_trace", "optimize_assert", "set_stance") if not hasattr(dynamo, each)]
    assert not missing


@pytest.mark.parametrize("module", ["_dynamo", "_inductor", "compiler"])
def test_settings_of_the_compiler_can_be_made(module: str) -> None:
    ours, real = (importlib.import_module(f"{each}.{module}.config") for each in ("flambeau", "torch"))
    dynamo = importlib.import_module("flambeau._dynamo")
    simple = {
        name: entry.default
        for name, entry in real._config.items()
        if type(entry.default) in (bool, int) and name.islower() and not name.startswith("_")
    }
    for name, default in simple.items():
        group, _, own = name.rpartition(".")
        assert getattr(getattr(ours, group) if group else ours, own) == default, name
        if not group:
            with ours.patch(**{name: "another"}):
                assert getattr(ours, name) == "another"
    ours = importlib.import_module("flambeau._dynamo.config")
    with dynamo.patch_dynamo_config("recompile_limit", 3):
        assert ours.recompile_limit == 3
    assert ours.recompile_limit == 8


@pytest.mark.parametrize("limit", [1, 3])
def test_how_many_programs_there_may_be(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "_FREE_SECONDS", math.inf)  # attempts are not put off on a slow machine
    g = torch.compile(lambda x, flag: x * 2 if flag == "double" else x + len(flag), recompile_limit=limit)
    for _ in range(4):
        for flag in ("double", "a", "aaa", "aaaaa"):
            for _ in range(2):
                g(X, flag)
    explained = torch.compiler.explain(g)
    assert len(explained.programs) == limit
    assert f"it has {limit} programs, which is the most" in explained.reasons
