"""Reasons: why calls have no program, which value differed, and what the environment asks to be told of."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler import _compiled
from flambeau.compiler.capture import effort, watch

X = torch.ones(3, 4)


def test_which_value_differed() -> None:
    layer, options = nn.Linear(4, 2), {"scale": 1.0}

    @torch.compile
    def f(x: Any, times: int = 1) -> Any:
        return layer(x) * options["scale"] * times

    def again(x: Any, **kwargs: Any) -> list[str]:
        before = len(torch.compiler.explain(f).recompiles)
        f(x, **kwargs)
        return torch.compiler.explain(f).recompiles[before:]

    for _ in range(4):
        assert again(X) == []
    assert again(torch.ones(5, 4)) == ["args[0] was <float32[3, 4]>, now it is <float32[5, 4]>"]
    f(torch.ones(5, 4))
    options["scale"] = 2.0
    assert again(torch.ones(5, 4)) == []  # a counter has another number in each call
    assert again(torch.ones(5, 4)) == ["options['scale'] was 1.0, now it is 2.0"]
    f(torch.ones(5, 4))
    with torch.no_grad():
        assert again(torch.ones(5, 4)) == ["grad mode was True, now it is False"]
        f(torch.ones(5, 4))
        assert again(torch.ones(5, 4), times=2) == ["kwargs was empty, now it is {'times': 2}"]
    explained = torch.compiler.explain(f)
    assert "\n- recorded again: args[0] was <float32[3, 4]>, now it is <float32[5, 4]>" in explained


def test_zero_programs_have_a_reason() -> None:
    f = torch.compile(lambda x: x * 2)
    assert "too few calls" in torch.compiler.explain(f)
    f = torch.compile(lambda x: x * 2, backend="eager")
    assert "backend='eager'" in torch.compiler.explain(f)
    f = torch.compile(lambda x: x * 2)
    sys.setprofile(lambda *_: None)
    try:
        for _ in range(5):
            f(X)
    finally:
        sys.setprofile(None)
    assert torch.compiler.explain(f).reasons == [
        "a profiler is set (sys.setprofile), in whose place the compiler would have to be"
    ]


def test_a_function_with_all_its_programs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "_FREE_SECONDS", math.inf)  # attempts are not put off on a slow machine
    f = torch.compile(lambda x, number: x * number, dynamic=False)
    for number in range(12):
        for _ in range(2):
            f(X, float(number + 2))
    explained = torch.compiler.explain(f)
    assert explained.startswith("8 programs")
    assert explained.reasons == ["it has 8 programs, which is the most"]


def test_logs_that_the_environment_asks_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def calls() -> str:
        f = torch.compile(lambda x: x * 2)
        for each in (X, X, X, X, X[:2], X[:2]):
            f(each)

        @torch.compile
        def printing(x: Any) -> Any:
            sys.stdout.write("")
            return x + 1

        printing(X), printing(X)
        return capsys.readouterr().err

    monkeypatch.delenv("TORCH_LOGS", raising=False)
    assert calls() == ""
    monkeypatch.setenv("TORCH_LOGS", "+recompiles,graph_breaks")
    told = calls()
    assert "[__recompiles] Recompiling test_logs_that_the_environment_asks_for.<locals>" in told
    assert "guard failure: args[0] was <float32[3, 4]>, now it is <float32[2, 4]>" in told
    assert "[__graph_breaks] Graph break in test_logs_that_the_environment_asks_for.<locals>.calls" in told
    assert "test_reasons.py" in told
    assert "output_code" not in told
    monkeypatch.setenv("TORCH_LOGS", "output_code")
    assert "[__output_code] def call(args, kwargs):" in calls()


def test_what_is_never_compiled_is_soon_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    tried: list[int] = []
    state, new_call = _compiled.State, _compiled.Compiled._new_call

    def counted(*args: Any) -> Any:
        walks.append(1)
        return state(*args)

    def noted(self: Any, attempt: Any) -> Any:
        tried.append(1)
        return new_call(self, attempt)

    monkeypatch.setattr(_compiled, "State", counted)
    monkeypatch.setattr(_compiled.Compiled, "_new_call", noted)
    names: dict[str, Any] = {"stdout": sys.stdout}
    exec("def writes(x):\n    stdout.write('')\n    return x * 2\n", names)  # without source: it has no parts
    f = torch.compile(names["writes"])
    for _ in range(20):
        assert f(X).tolist() == (X * 2).tolist()
    assert len(torch.compiler.explain(f).reasons) == 2
    assert (len(walks), len(tried)) == (1, 2)


def test_the_third_call_runs_the_program() -> None:
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return x * 2

    torch.compiler.allow_in_graph(counted)
    f = torch.compile(lambda x: counted(x) + 1)
    for _ in range(5):
        assert f(X).tolist() == (X * 2 + 1).tolist()
    assert len(calls) == 2


def test_a_refused_call_is_watched_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    note = watch.Watch._note

    def noted(self: Any, frame: Any, event: str, argument: Any) -> None:
        events.append(event)
        note(self, frame, event, argument)

    monkeypatch.setattr(watch.Watch, "_note", noted)
    layers = torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(50)])
    names: dict[str, Any] = {"layers": layers, "stdout": sys.stdout}
    exec("def early(x):\n    stdout.write('')\n    return layers(x)\n", names)
    exec("def late(x):\n    x = layers(x)\n    stdout.write('')\n    return x\n", names)
    counts: dict[str, int] = {}
    for name in ("late", "early"):
        events.clear()
        f = torch.compile(names[name])
        for _ in range(20):
            assert f(X).tolist() == X.relu().tolist()
        counts[name] = len(events)
    assert 8 * counts["early"] < counts["late"]
    assert counts["late"] > 200


def test_the_engine_at_work_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen_code: list[str] = []
    note = watch.Watch._note

    def noted(self: Any, frame: Any, event: str, argument: Any) -> None:
        seen_code.append(frame.f_code.co_filename)
        note(self, frame, event, argument)

    monkeypatch.setattr(watch.Watch, "_note", noted)
    monkeypatch.setattr(watch, "_SWITCHES", True)
    weight = torch.ones(3, 3, requires_grad=True)

    def steps(x: Any) -> Any:
        for _ in range(40):
            x = torch.nn.functional.linear(x, weight).relu()
        return x.sum()

    torch.compile(steps)(torch.ones(2, 3))
    inside = [each for each in seen_code if each != __file__]
    assert len(inside) < 40 * 8  # the functions that were called, and what they were met in first


def test_what_the_engine_calls_back_is_watched() -> None:
    scale = [2.0]

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * scale[0]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * scale[0]

    def total(x: Any) -> Any:
        return torch.func.vmap(lambda row: Scaled.apply(row) * scale[0])(x).sum()

    f = torch.compile(total)
    for factor in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 4.0):
        scale[0] = factor
        leaf, expected = X.clone().requires_grad_(), X.clone().requires_grad_()
        f(leaf).backward()
        total(expected).backward()
        assert leaf.grad.tolist() == expected.grad.tolist()


def test_the_second_attempt_looks_for_the_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []
    enter = watch.Watch.__enter__

    def entered(self: Any) -> Any:
        watched.append("watched")
        return enter(self)

    monkeypatch.setattr(watch.Watch, "__enter__", entered)
    names: dict[str, Any] = {"stdout": sys.stdout, "loud": [True]}
    exec("def writes(x):\n    if loud[0]:\n        stdout.write('')\n    return x * 2\n", names)
    f = torch.compile(names["writes"])
    for _ in range(6):
        assert f(X).tolist() == (X * 2).tolist()
    assert watched == ["watched"]
    assert len(torch.compiler.explain(f).reasons) == 2
    watched.clear()
    f = torch.compile(names["writes"])
    assert f(X).tolist() == (X * 2).tolist()
    names["loud"][0] = False
    for _ in range(5):
        assert f(X).tolist() == (X * 2).tolist()
    explained = torch.compiler.explain(f)
    assert (len(explained.programs), len(explained.reasons)) == (1, 1)
    assert len(watched) == 3  # the first call, the third, and the fourth, which was recorded
    assert sys.gettrace() is None
    names["loud"][0] = True
    assert f(X).tolist() == (X * 2).tolist()


class Counting(nn.Module):
    """A network that changes Python state in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.log, self.kept = 0, {"calls": 0}, [0]

    def forward(self, x: Any, how: str) -> Any:
        if how == "attribute":
            self.calls += 1  # attribute
        if how == "item":
            self.log["calls"] = self.log["calls"] + 1  # item
        if how == "list":
            self.kept.append(1)  # list
        return x * 2 + 1


@pytest.mark.parametrize("how", ["attribute", "item", "list"])
def test_what_of_python_state_a_call_changes(how: str) -> None:
    changed = {"attribute": "'calls' gets another value", "item": "'calls' gets another value"}
    compiled = torch.compile(Counting())
    for _ in range(6):
        assert torch.equal(compiled(X, how), X * 2 + 1)
    with open(__file__, encoding="utf-8") as source:
        line = next(number for number, text in enumerate(source, 1) if text.rstrip().endswith(f"  # {how}"))
    reason = f"it changes Python state: {changed.get(how, 'a list gets other items')} ({__file__}:{line})"
    assert torch.compiler.explain(compiled).reasons[0] == reason


@pytest.mark.parametrize("options", [{"use_reentrant": False}, {"use_reentrant": True}, {"preserve_rng_state": False}])
def test_recomputation_has_a_reason_and_the_users_line(options: dict[str, Any]) -> None:
    from flambeau.utils.checkpoint import checkpoint

    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    options = {"use_reentrant": False, **options}

    def function(x: Any) -> Any:
        return checkpoint(layer, x * 2, **options).sum()

    compiled = torch.compile(function)
    for _ in range(4):
        found = []
        for each in (compiled, function):
            torch.manual_seed(0)
            layer.zero_grad()
            x = torch.ones(3, 4, requires_grad=True)
            each(x).backward()
            found.append([x.grad.tolist(), layer[0].weight.grad.tolist()])
        assert found[0] == found[1]
    reason = torch.compiler.explain(compiled).reasons[0]
    assert reason.startswith("torch.utils.checkpoint computes results again in the backward pass")
    assert reason.endswith(f"({__file__}:{function.__code__.co_firstlineno + 1})")


def test_recomputation_saves_the_same_beside_who_looks_on() -> None:
    """The first calls are watched: a pack hook that runs ops meanwhile stays in force behind them."""
    from flambeau.utils.checkpoint import checkpoint

    def step(x: Any) -> Any:
        checkpoint(nn.Softsign(), x, use_reentrant=False).sum().backward()
        return x.grad

    compiled = torch.compile(step)
    for _ in range(5):
        values = torch.randn(3)
        found = [each(values.clone().requires_grad_()).tolist() for each in (compiled, step)]
        assert found[0] == found[1]


def test_without_gradients_nothing_is_computed_again() -> None:
    from flambeau.utils.checkpoint import checkpoint

    layer = nn.Linear(4, 4)
    compiled = torch.compile(lambda x: checkpoint(layer, x * 2, use_reentrant=False).sum())
    with torch.no_grad():
        for _ in range(4):
            assert compiled(X).item() == layer(X * 2).sum().item()
    explained = torch.compiler.explain(compiled)
    assert len(explained.programs) == 1, explained.reasons
