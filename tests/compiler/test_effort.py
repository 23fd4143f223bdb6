"""What attempts to compile a function may cost, and that parts are given up where they are slower than Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import flambeau as torch
from flambeau.compiler import _compiled as compiled_module
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.capture import effort as effort_module
from flambeau.compiler.capture.attempt import Attempt
from flambeau.compiler.capture.breaks.parts import Parts
from flambeau.compiler.capture.effort import Effort, Trial
from flambeau.compiler.capture.guards import MISS
from flambeau.compiler.capture.recorder import Recorder
from flambeau.compiler.tools.explain import explanation_of

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(effort_module, "thread_time", lambda: self.now)
        monkeypatch.setattr(effort_module, "perf_counter", lambda: self.now)


def test_attempts_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, effort = Clock(monkeypatch), Effort()

    def call(seconds: float) -> bool:
        with effort.counted():
            allowed = effort.allows()
            clock.now += seconds
        return allowed

    assert call(1.5)
    assert call(1.5)
    assert not call(0.1)  # three seconds are spent: 30 seconds of calls are needed before the next one
    assert effort.lacks_time
    while not effort.has_time():
        with effort.counted():
            clock.now += 0.5
    assert 29 <= effort._calls <= 31
    assert call(1.0)
    assert not call(0.1)


def test_attempts_after_a_refusal_have_a_budget_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "_SHORT", 1e-3)
    clock, effort = Clock(monkeypatch), Effort()

    def call(*attempts: float) -> int:
        """A call of 0.1 seconds, and attempts that take longer by so much; how many of them were made."""
        made = 0
        with effort.counted():
            clock.now += 0.1
            for each in attempts:
                if effort.allows():
                    clock.now += each
                    made += 1
        return made

    assert call() == 0
    assert call(1.0) == 1  # nothing was refused so far: it may take two seconds
    effort.was_refused = True
    assert call(0.1) == 0  # it took ten plain calls: three and a tenth of the time of calls are allowed
    count = next(count for count in range(400) if call(0.25, 0.25))
    assert 60 <= count <= 80
    assert call(0.1) == 0
    effort.programs = 1  # from now on it is a twenty-fifth
    assert next(count for count in range(400) if call(0.25, 0.25)) > 100
    effort.hits = 625  # each stands for a plain call
    assert call(1.0, 1.0, 1.0, 1.0) == 3  # the last one begins while there is time


def test_what_any_first_call_takes_is_not_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first call imports modules and makes kernels: had this counted, the next attempt would be 1,200 calls away."""
    monkeypatch.setattr(effort_module, "_SHORT", 1e-3)
    clock, effort = Clock(monkeypatch), Effort()
    with effort.counted():
        assert effort.allows()
        clock.now += 3.0
    effort.was_refused = True
    calls = 0
    while calls == 0 or not effort.has_time():
        with effort.counted():
            clock.now += 0.01
        calls += 1
    assert calls <= 2


def test_short_calls_have_the_budget_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "_SHORT", 1e-3)
    clock, effort = Clock(monkeypatch), Effort()
    effort.was_refused = True
    for seconds in (1e-4, 1.0, 0.9):
        with effort.counted():
            assert seconds < 1e-3 or effort.allows()
            clock.now += seconds


def test_the_first_program_is_no_attempt_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, effort = Clock(monkeypatch), Effort()
    with effort.counted():
        assert effort.allows()
        clock.now += 5.0
        effort.is_invested = True
    assert effort.has_time()
    assert not effort.is_invested


def test_parts_are_looked_for_when_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        y = (x * 2).relu() + 1
        seen.append(y.sum().item())
        return y.exp() - x

    g = Compiled(f)
    monkeypatch.setattr(Effort, "has_time", lambda self: not self.was_refused)
    for turn in range(8):
        assert g(X + turn).tolist() == f(X + turn).tolist()
        assert seen.pop() == seen.pop()
    assert g.parts is None
    assert g._attempts < 4
    monkeypatch.undo()
    for turn in range(12):
        assert g(X + turn).tolist() == f(X + turn).tolist()
    assert g.parts is not None
    assert len(g.all_programs) == 2


@pytest.mark.parametrize(("parts", "is_slower"), [(0.9, False), (1.0, False), (1.04, False), (1.2, True)])
def test_parts_are_compared_with_eager_calls(monkeypatch: pytest.MonkeyPatch, parts: float, is_slower: bool) -> None:
    clock, effort, trial = Clock(monkeypatch), Effort(), Trial()
    calls: list[str] = []

    def run(name: str, seconds: float) -> None:
        calls.append(name)
        clock.now += seconds * (5 if len(calls) in (9, 14) else 1)  # something else runs now and then

    for _ in range(18):
        assert trial.verdict(effort) is None
        trial.run(effort, Attempt(lambda: run("eager", 1.0), (), {}), lambda: run("parts", parts))
    assert calls == ["parts"] * 8 + ["parts", "eager"] * 5
    verdict = trial.verdict(effort)
    assert (verdict is not None) is is_slower
    if verdict is not None:
        assert verdict.endswith("a call takes 1.2e+03 ms, eagerly 1e+03 ms: it is run eagerly")


def test_what_there_was_no_time_for_is_attempted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, effort, trial = Clock(monkeypatch), Effort(), Trial()
    effort.programs = 1
    calls: list[str] = []

    def in_parts() -> None:
        if effort.allows():
            clock.now += 4.0
        calls.append("parts")
        clock.now += 1.2

    def eager() -> None:
        calls.append("eager")
        clock.now += 1.0

    for _ in range(100):
        trial.run(effort, Attempt(eager, (), {}), in_parts)
        assert trial.verdict(effort) is None
    assert calls[:29] == [
        "parts",
        *["eager"] * 8,
        *["parts", "eager"] * 5,
        *["eager"] * 10,
    ]  # nothing says that parts gain
    assert "parts" in calls[29:]


def test_without_programs_calls_run_eagerly_until_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "_SHORT", 1e-3)
    clock, effort, trial = Clock(monkeypatch), Effort(), Trial()
    effort.was_refused = True
    calls: list[str] = []

    def run(name: str, seconds: float) -> None:
        calls.append(name)
        clock.now += 1.0
        if name == "parts" and effort.allows():
            clock.now += seconds

    with effort.counted():
        clock.now += 1.0
    for _ in range(200):
        trial.run(effort, Attempt(lambda: run("eager", 0.0), (), {}), lambda: run("parts", 4.0))
    first, second, *_ = [number for number, each in enumerate(calls) if each == "parts"]
    assert first == 0
    assert 5 <= second <= 15  # three plain calls and a tenth of the time of calls
    assert trial.verdict(effort) is None


def test_what_programs_save_is_spent_on_further_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "_SHORT", 1e-3)

    def attempts(in_parts: float) -> int:
        """How many attempts of ten plain calls are made in 200 calls, if one in parts takes so long."""
        clock, effort, trial = Clock(monkeypatch), Effort(), Trial()
        effort.was_refused, effort.programs, made = True, 1, 0
        with effort.counted():
            clock.now += 1.0

        def eager() -> None:
            clock.now += 1.0

        def parts() -> None:
            nonlocal made
            clock.now += in_parts
            if effort.allows():
                clock.now += 10.0
                made += 1

        for _ in range(200):
            trial.run(effort, Attempt(eager, (), {}), parts)
        return made

    assert attempts(1.0) <= 3
    assert attempts(0.5) >= 8


def test_data_that_two_calls_find_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each call chooses other elements several times, nothing has to be recorded to find that out."""
    recorded: list[Any] = []
    record = Compiled._recorded

    def counted(self: Any, *args: Any) -> Any:
        recorded.append(self)
        return record(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", counted)

    class Experts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(5)])

        def forward(self, x: Any) -> Any:
            vars(self) if x is None else None  # nobody foresees what this reads
            chosen, result = (x[:, 0] * 5).long(), x * 0
            for number, expert in enumerate(self.experts):
                (rows,) = torch.where(chosen == number)
                result[rows] = expert(x[rows])
            return result

    model = Experts()
    compiled = Compiled(model)
    for turn in range(6):
        x = torch.rand(16, 3, generator=torch.Generator().manual_seed(turn))
        assert torch.equal(compiled(x), model(x))
        assert compiled not in recorded
    assert "are others each time, by sizes" in compiled.reasons[0]
    assert f"{__file__}:" in compiled.reasons[0]
    assert compiled.parts is not None


def slow_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a function take longer in parts, whatever it does."""

    class Slow(Parts):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            run: Callable[..., Any] = self.run

            def slowly(*args: Any, **kwargs: Any) -> Any:
                time.sleep(0.02)
                return run(*args, **kwargs)

            self.run = slowly

    monkeypatch.setattr("flambeau.compiler.capture.breaks.parts.Parts", Slow)


def test_parts_that_are_slower_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_in_parts(monkeypatch)
    seen: list[float] = []

    def f(x: Any) -> Any:
        y = (x * 2).relu() + 1
        seen.append(y.sum().item())
        return y.exp() - x

    g = Compiled(f)
    for turn in range(40):
        assert g(X + turn).tolist() == f(X + turn).tolist()
        assert seen.pop() == seen.pop()
    assert g.parts is None
    assert not seen
    assert "it is run eagerly" in g.reasons[-1]


def test_a_recording_that_was_refused_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    recorder = Recorder.__init__

    def counted(self: Any, *args: Any) -> None:
        recorded.append(1)
        recorder(self, *args)

    monkeypatch.setattr(Recorder, "__init__", counted)
    weight = torch.ones(3)
    names: dict[str, Any] = {"weight": weight}
    exec("def f(x):\n    weight.add_(1)\n    if x.sum() > 0: x = x * 2\n    return x * weight\n", names)  # no parts
    g = Compiled(names["f"])
    for turn in range(8):
        assert g(X).tolist() == (X * 2 * (turn + 2) if X.sum() > 0 else X * (turn + 2)).tolist()
    assert len(recorded) == 1
    assert len(g.reasons) == 2
    assert "Python looks at the elements" in g.reasons[0]


def test_a_number_that_is_another_each_time_is_soon_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    record = Compiled._recorded

    def counted(self: Any, *args: Any) -> Any:
        recorded.append(1)
        return record(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", counted)
    g = Compiled(lambda x, scale: x * scale)
    for turn in range(30):
        assert g(X, turn / 2).tolist() == (X * (turn / 2)).tolist()
    assert len(recorded) == 1
    assert len(g.programs) == 1
    assert g.reasons == ["args[1] has another value in every call (8 values)"]


def test_values_that_come_again_have_programs() -> None:
    g = Compiled(lambda x, scale: x * scale)
    for turn in range(30):
        assert g(X, (turn % 5) / 2).tolist() == (X * ((turn % 5) / 2)).tolist()
    assert len(g.programs) == 5
    assert not g.reasons
    assert len(g.recompiles) == 4


def test_what_a_counter_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that reads what another part counts: the first values have programs, later ones do not."""
    recorded: list[int] = []
    record = Compiled._recorded

    def counted(self: Any, *args: Any) -> Any:
        recorded.append(1)
        return record(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", counted)
    steps = {"taken": 0}

    def f(x: Any) -> Any:
        steps["taken"] += 1
        return (x * 2).relu() + steps["taken"]

    g = Compiled(f)
    for turn in range(1, 25):
        assert g(X).tolist() == ((X * 2).relu() + turn).tolist()
    assert len(recorded) <= 5


def test_what_changes_again_is_not_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    recorder = Recorder.__init__

    def counted(self: Any, *args: Any) -> None:
        recorded.append(len(recorded))
        recorder(self, *args)

    monkeypatch.setattr(Recorder, "__init__", counted)
    grown = [1]

    def f(x: Any) -> Any:
        grown.append(1)
        return x * 2

    g = Compiled(f)
    g(X)
    assert len(recorded) == 1
    g(X)
    assert len(recorded) == 1  # it was only seen that the list grows again
    assert g.parts is not None
    for _ in range(6):
        assert g(X).tolist() == (X * 2).tolist()
    assert len(grown) == 9


COUNTERS = {
    "an attribute": "state.count += 1",
    "an attribute of an attribute": "state.inner.count = state.inner.count + 1",
    "an item": 'state.inner.counts["n"] += 1',
    "a global": "global total\n    total += 1",
    "a list": "state.inner.history.append(1)",
}


def counting(statement: str) -> tuple[Any, Any]:
    """A function that counts, too deep for anybody to foresee, and without source: it has no parts."""
    inner = SimpleNamespace(count=0, counts={"n": 0}, history=[0])
    state = SimpleNamespace(count=0, inner=inner)
    names: dict[str, Any] = {"state": state, "total": 0, "vars": vars}
    exec(f"def f(x):\n    {statement}\n    vars(state) if x is None else None\n    return x * 2\n", names)
    return names["f"], lambda: state.count + inner.count + inner.counts["n"] + names["total"] + len(inner.history) - 1


@pytest.mark.parametrize("statement", COUNTERS.values(), ids=COUNTERS)
def test_what_counts_is_never_recorded(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    recorded: list[int] = []
    recorder = Recorder.__init__

    def counted(self: Any, *args: Any) -> None:
        recorded.append(1)
        recorder(self, *args)

    monkeypatch.setattr(Recorder, "__init__", counted)
    function, count = counting(statement)
    g = Compiled(function)
    for turn in range(6):
        assert g(X).tolist() == (X * 2).tolist()
        assert count() == turn + 1
    assert recorded == []
    assert len(g.reasons) == 1
    assert g.reasons[0].startswith(compiled_module.CHANGES)


def test_what_counts_in_the_first_call_alone_has_a_program() -> None:
    function, count = counting("state.count = min(state.count + 1, 1)")
    g = Compiled(function)
    for _ in range(5):
        assert g(X).tolist() == (X * 2).tolist()
        assert count() == 1
    assert len(g.programs) == 1
    assert g.reasons == []


def test_a_loop_beside_a_break_is_a_program() -> None:
    """What the loop sets itself, its variable above all, has no value before it."""
    layers = [torch.nn.Linear(3, 3) for _ in range(4)]
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(len(seen))
        for number, layer in enumerate(layers):
            y = layer(x)
            x = y + number if number else y
        return x

    expected = f(X).tolist()
    g = Compiled(f)
    for _ in range(10):
        assert g(X).tolist() == expected
    assert seen == list(range(11))
    assert len(g.all_programs) == 1


def test_what_is_made_once_does_not_count_as_a_change_that_comes_again() -> None:
    class Lazy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table: Any = None
            self.names: list[str] = []

        def forward(self, x: Any) -> Any:
            if self.table is None:
                self.table = x.new_ones(3)
                self.names.append("x")
            return x * self.table + len(self.names)

    g = Compiled(Lazy())
    for _ in range(3):
        assert g(X).tolist() == (X + 1).tolist()
    assert g._hits == 1
    assert not g.reasons


def timed_function(monkeypatch: pytest.MonkeyPatch, program: float, eager: float) -> tuple[Any, list[str]]:
    """A compiled function whose calls take so many seconds, by a program and eagerly; and how its calls ran."""
    ran: list[str] = []
    now = [0.0]
    monkeypatch.setattr(compiled_module, "perf_counter", lambda: now[0])
    compiled = Compiled(lambda x: x * 2 + 1)
    for _ in range(3):
        compiled(X)
    own, plain = compiled._programs[0], compiled.function

    def by_program(args: Any, kwargs: Any) -> Any:
        result = own(args, kwargs)
        if result is not MISS:
            ran.append("program")
            now[0] += program * (9 if len(ran) % 7 == 3 else 1)  # something else runs now and then
        return result

    def eagerly(x: Any) -> Any:
        ran.append("eager")
        now[0] += eager * (9 if len(ran) % 5 == 3 else 1)
        return plain(x)

    vars(by_program).update(vars(own))
    compiled._programs[0], compiled.function = by_program, eagerly
    return compiled, ran


def test_a_function_that_is_quicker_without_programs_runs_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, ran = timed_function(monkeypatch, 3e-6, 1e-6)
    for _ in range(60):
        compiled(X)
    assert set(ran) == {"program"}
    assert compiled.slower is None
    for _ in range(60):
        assert torch.equal(compiled(X), X * 2 + 1)
    assert compiled.slower == "a program takes 3 us, an eager call 1 us: calls run eagerly"
    assert "an eager call 1 us" in explanation_of(compiled)
    assert explanation_of(compiled).startswith("1 program, no call that could not be compiled")
    ran.clear()
    for _ in range(900):
        compiled(X)
    assert set(ran) == {"eager"}
    ran.clear()
    for _ in range(400):  # the pause is over: programs are timed anew, and the next pause is longer
        compiled(X)
    assert 64 <= ran.count("program") <= 100
    assert compiled._contest.left > 1024


def test_a_function_that_is_quicker_by_programs_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, ran = timed_function(monkeypatch, 1e-6, 1e-6)
    for _ in range(800):
        compiled(X)
    assert ran.count("eager") == 15
    assert compiled.slower is None


def test_calls_with_a_backward_part_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.ones(3, requires_grad=True)
    compiled = Compiled(lambda x: x * weight)
    for _ in range(200):
        compiled(X).sum().backward()
    assert not compiled._contest.is_on
    assert compiled._hits >= 190


def test_other_calls_are_recorded_while_programs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "_TIMED_PAIRS", 1000)
    compiled = Compiled(lambda x: x * 2 + 1)
    for turn in range(140):
        x = X.double() if turn > 70 and turn % 3 else X
        assert torch.equal(compiled(x), x * 2 + 1)
    assert compiled._contest.is_on
    assert len(compiled.programs) == 2


def test_states_that_are_given_back_have_a_program() -> None:
    layer = torch.nn.LSTM(4, 5, 2, batch_first=True)
    compiled = torch.compile(layer)
    for turn in range(4):
        states = [None, None]
        for _ in range(6):
            x = torch.randn(3, 7, 4)
            results = [call(x, state) for call, state in zip((layer, compiled), states, strict=True)]
            assert torch.equal(results[0][0], results[1][0])
            states = [tuple([each.detach() for each in state]) for _, state in results]
        assert torch.compiler.explain(compiled).startswith("2 programs" if turn else ""), turn
    told = torch.compiler.explain(compiled).recompiles
    assert any("now it is (<float32[2, 3, 5]>, <float32[2, 3, 5]>)" in each for each in told)
