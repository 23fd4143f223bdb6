"""Programs are written when a call first needs them, and under the settings that they were recorded under."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

import flambeau as torch
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.capture.guards import MISS
from flambeau.compiler.emit.deferred import Later

X = torch.linspace(-2, 2, 12).reshape(3, 4).clone()


def recorded(function: Any, *args: Any) -> Compiled:
    """A function after the call that is recorded."""
    made = Compiled(function)
    made(*args)
    assert [type(each) for each in made._programs] == [Later], made.reasons
    return made


def test_the_call_behind_the_recorded_one_writes_the_program_and_runs_it() -> None:
    made = recorded(lambda x: (x * 2).relu() + 1, X)
    assert torch.equal(made(X + 1), ((X + 1) * 2).relu() + 1)
    assert len(made._programs) == 1
    assert not isinstance(made._programs[0], Later)
    assert made.programs == made._programs


def test_whoever_looks_at_programs_finds_them_written() -> None:
    step = torch.compile(lambda x: (x * 2).relu() + 1)
    for _ in range(3):
        step(X)
    explained = torch.compiler.explain(step)
    assert explained.startswith("1 program, no call")
    assert "def call" in explained
    assert torch.equal(step(X), (X * 2).relu() + 1)


def test_under_other_settings_nothing_is_written() -> None:
    weight = torch.ones(4, requires_grad=True)
    made = recorded(lambda x: (x * weight).sum(), X)
    pending = made._programs[0]
    with torch.no_grad():
        assert not made(X).requires_grad
        assert made._programs[0] is pending
    result = made(X)
    assert result.requires_grad
    assert type(made._programs[0]) is not Later
    result.backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad, X.sum(0))


def test_what_is_written_under_other_settings_is_looked_at_and_not_run() -> None:
    made = recorded(lambda x: (x * 2).relu() + 1, X)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert len(made.programs) == 1
    finally:
        torch.set_default_dtype(before)
    assert not made._programs
    for _ in range(3):
        assert torch.equal(made(X), (X * 2).relu() + 1)
    assert len(made._programs) == 1


def test_of_many_threads_one_writes() -> None:
    written: list[int] = []
    programs: list[Any] = []

    def write() -> Any:
        written.append(1)
        return lambda args, kwargs: args[0] + 1

    programs.append(Later(write, lambda: True, set(), programs))
    pending, found = programs[0], []
    threads = [threading.Thread(target=lambda: found.append(pending((1,), {}))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [2] * 8
    assert written == [1]
    assert not isinstance(programs[0], Later)


def test_what_cannot_be_written_is_not_tried_again() -> None:
    programs: list[Any] = []

    def fail() -> Any:
        raise KeyboardInterrupt

    programs.append(Later(fail, lambda: True, set(), programs))
    with pytest.raises(KeyboardInterrupt):
        programs[0]((), {})
    assert programs[0]((), {}) is MISS
    assert programs[0].written() is None


def test_what_was_recorded_is_let_go_when_the_program_is_written() -> None:
    x = X.clone()
    made, given = recorded(lambda x: (x * 2).relu() + 1, x), weakref.ref(x._array)
    del x
    made(X)
    assert given() is None
