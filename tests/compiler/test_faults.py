"""Whatever fails inside the compiler, and whenever it is interrupted: programs go on as if it were not there."""

from __future__ import annotations

import gc
import sys
import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._core.modes import THREAD
from flambeau.compiler import _compiled
from flambeau.compiler._marks import _INSIDE
from flambeau.compiler.emit import deferred as _later
from flambeau.compiler.emit import source as _emit

from .faults import PROGRAMS, Injected, functions, sweep


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLAMBEAU_COMPILE_FAULTS", raising=False)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_functions_that_raise(program: str) -> None:
    """Some of the functions; `python -m tests.compiler.faults` tries all of them."""
    count, wrong = sweep(program, every=40)
    assert count > 3
    assert wrong == []


def test_the_sweep_knows_the_compiler() -> None:
    names = functions()
    assert len(names) > 400
    for each in (
        "capture.recorder:Recorder._run",
        "emit.source:Source.function",
        "optim._prepared:_Group.run",
        "passes:improved",
    ):
        assert each in names


def _raise(*args: Any, **kwargs: Any) -> Any:
    raise KeyError("made up")


def test_one_warning_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compiled, "outlined", _raise)
    f = torch.compile(lambda x: x * 2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = [f(torch.ones(2)).tolist() for _ in range(6)]
    assert found == [[2.0, 2.0]] * 6
    assert [str(each.message).split(" (")[0] for each in told] == [
        "torch.compile: the compiler failed at test_one_warning_and_a_reason.<locals>.<lambda>"
    ]
    assert told[0].filename == __file__
    explained = torch.compiler.explain(f)
    assert explained.startswith("0 programs, 1 call")
    assert "KeyError: 'made up' (test_faults.py" in explained


def test_the_environment_turns_faults_into_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMBEAU_COMPILE_FAULTS", "raise")
    monkeypatch.setattr(_compiled, "outlined", _raise)
    f = torch.compile(lambda x: x * 2)
    with pytest.raises(KeyError, match="made up"):
        f(torch.ones(2))


def test_explanations_of_what_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    f = torch.compile(lambda x: x * 2)
    f(torch.ones(2))
    monkeypatch.setattr(_emit.Source, "function", _raise)
    with pytest.warns(UserWarning, match="the compiler failed"):
        assert torch.compiler.explain(f).startswith("0 programs, 1 call")
    assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    assert isinstance(_later.Later, type)


def test_errors_of_ops_stay_those_of_the_plain_call() -> None:
    table = nn.Embedding(4, 3)
    seen: list[int] = []

    def f(x: Any) -> Any:
        return table(x).sum()

    compiled = torch.compile(f)
    for _ in range(5):
        compiled(torch.tensor([1, 2]))
    for run in (f, compiled):
        with pytest.raises(IndexError) as error:
            run(torch.tensor([1, 7]))
        seen.append(hash(str(error.value).splitlines()[0]))
    assert seen[0] == seen[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(torch.tensor([1, 2])).requires_grad
    assert torch.compiler.explain(compiled).startswith("1 program, no call")


def test_an_error_behind_effects_is_raised_once() -> None:
    """A step that has run does not run again because something after it raises."""
    weight = torch.ones(3, requires_grad=True)
    opt = torch.optim.SGD([weight], lr=1.0)
    steps: list[int] = []

    @torch.compile
    def step(x: Any) -> Any:
        opt.zero_grad()
        (weight * x).sum().backward()
        opt.step()

    for _ in range(5):
        step(torch.ones(3))
    assert weight.tolist() == [-4.0] * 3
    handle = opt.register_step_post_hook(lambda *_: steps.append(1) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        step(torch.ones(3))
    assert weight.tolist() == [-5.0] * 3
    assert steps == [1]
    handle.remove()
    step(torch.ones(3))
    assert weight.tolist() == [-6.0] * 3


def test_what_checks_look_for_may_be_gone() -> None:
    names: dict[str, Any] = {"scale": 2.0}
    text = "def f(x):\n    try:\n        return x * scale\n    except NameError:\n        return x * 3\n"
    exec(text, names)
    compiled = torch.compile(names["f"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [compiled(torch.ones(2)).tolist() for _ in range(5)] == [[2.0, 2.0]] * 5
        del names["scale"]
        assert [compiled(torch.ones(2)).tolist() for _ in range(5)] == [[3.0, 3.0]] * 5
        names["scale"] = 5.0
        assert [compiled(torch.ones(2)).tolist() for _ in range(5)] == [[5.0, 5.0]] * 5
    assert torch.compiler.explain(compiled).programs


class _Interrupt(KeyboardInterrupt):
    pass


def _interrupted(run: Any, at: int) -> int:
    """Interrupt a call where the `at`-th function begins, or the next one that ends no context; how many have begun.

    Where `__exit__` itself is interrupted as it begins, no `with` statement of Python can do its work: the modes of a
    plain program would stay as they are, too.
    """
    count = 0
    is_done = False

    def trace(frame: Any, event: str, argument: Any) -> None:
        nonlocal count, is_done
        count += 1
        if 0 < at <= count and not is_done and frame.f_code.co_name != "__exit__":
            is_done = True
            sys.settrace(None)
            raise _Interrupt

    sys.settrace(trace)
    try:
        run()
    except _Interrupt:
        pass
    finally:
        sys.settrace(None)
    return count


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("earlier", [1, 2, 4])
def test_interrupts_leave_no_modes_behind(earlier: int) -> None:
    def prepared() -> Any:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        opt = torch.optim.Adam(net.parameters())

        def step(x: Any) -> Any:
            opt.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            opt.step()
            return loss.item()

        compiled = torch.compile(step)
        for _ in range(earlier):
            compiled(torch.ones(4, 3))
        return lambda: compiled(torch.ones(4, 3))

    total = _interrupted(prepared(), -1)
    for turn in range(12):
        run = prepared()
        _interrupted(run, 1 + total * turn // 12)
        assert torch.is_grad_enabled(), turn
        assert THREAD.modes.plain, turn
        assert sys.getprofile() is None, turn
        assert gc.isenabled(), turn
        assert _INSIDE.calls == 0, turn
        assert isinstance(run(), float)


def test_what_is_injected_is_no_error_of_ours() -> None:
    assert not issubclass(Injected, (RuntimeError, torch._dynamo.exc.TorchDynamoException))
