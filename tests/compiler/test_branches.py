"""Only lines that ran are read: branches that were not taken neither refuse a call nor guard it."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

X = torch.arange(6.0).reshape(2, 3)
SCALE, OTHER = 2.0, 3.0


def _run(compiled: Any) -> Any:
    return vars(compiled)["_run"]


def test_a_branch_that_is_not_taken_is_no_reason_to_refuse() -> None:
    def f(x: Any, is_noisy: bool) -> Any:
        if is_noisy:
            x = x + random.random() + time.time()
            os.urandom(1)
            print("never")
        return x * SCALE

    compiled = torch.compile(f)
    for _ in range(6):
        assert torch.equal(compiled(X, False), X * SCALE)
    assert torch.compiler.explain(compiled).startswith("1 program, no call that could not be compiled")


def test_what_a_branch_that_is_not_taken_would_read_is_no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, flag: bool) -> Any:
        if flag:
            return x * SCALE
        return x * OTHER

    compiled = torch.compile(f)
    for _ in range(5):
        compiled(X, True)
    monkeypatch.setitem(globals(), "OTHER", 5.0)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(compiled(X, True), X * SCALE)


@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_branches_by_turns_see_every_change(period: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Options:
        first, second = 1.0, 2.0

    options = Options()

    def f(x: Any, flag: bool) -> Any:
        if flag:
            y = x * options.first + SCALE
        else:
            y = x * options.second - OTHER
            if options.second > 4:
                y = y * len(sys.argv)
        return y

    compiled = torch.compile(f)
    for turn in range(40):
        if turn == 12:
            monkeypatch.setitem(globals(), "SCALE", 7.0)
        if turn == 20:
            options.second = 5.0
        if turn == 28:
            monkeypatch.setitem(globals(), "OTHER", 8.0)
        if turn == 34:
            monkeypatch.setattr(Options, "first", 9.0)
        flag = turn // period % 2 == 0
        assert torch.equal(compiled(X + turn, flag), f(X + turn, flag)), turn
    assert _run(compiled).programs


def test_a_conditional_expression_in_one_line_is_read_whole() -> None:
    table = {"a": 2.0, "b": 3.0}

    def f(x: Any, flag: bool) -> Any:
        return x * (table["a"] if flag else table["b"])

    compiled = torch.compile(f)
    for turn in range(16):
        table["a" if turn % 3 else "b"] += 1.0 if turn > 8 else 0.0
        assert torch.equal(compiled(X, turn % 2 == 0), f(X, turn % 2 == 0)), turn


def test_an_import_in_a_branch_that_is_not_taken_is_not_followed() -> None:
    def f(x: Any, flag: bool = False) -> Any:
        if flag:
            from random import random as drawn

            x = x * drawn()
        return x + 1

    compiled = torch.compile(f)
    for _ in range(5):
        assert torch.equal(compiled(X), X + 1)
    assert len(_run(compiled).programs) == 1
    before = random.getstate()
    found = compiled(X, True)
    random.setstate(before)
    assert torch.equal(found, f(X, True))


def test_under_a_debugger_all_lines_count() -> None:
    def f(x: Any, flag: bool = False) -> Any:
        if flag:
            return x * OTHER
        return x * SCALE

    seen: list[str] = []

    def trace(frame: Any, event: str, argument: Any) -> None:
        seen.append(event)

    compiled = torch.compile(f)
    sys.settrace(trace)
    try:
        for _ in range(5):
            assert torch.equal(compiled(X), X * SCALE)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(None)
    assert seen
    assert len(_run(compiled).programs) == 1


def test_gradients_of_many_uses_are_added_in_the_order_of_plain_calls() -> None:
    torch.manual_seed(0)
    weight = torch.randn(8, 8, requires_grad=True)

    def f(x: Any) -> Any:
        y = x
        for turn in range(7):
            y = y * 0.9 + x * (0.1 * turn) @ weight + x.sin()
        return y

    def gradients(function: Callable[[Any], Any], start: Any) -> tuple[Any, Any]:
        x = start.clone().requires_grad_()
        weight.grad = None
        hidden = x * 1.5
        ((function(hidden) + function(hidden) * hidden) * hidden.cos()).sum().backward()
        return x.grad, weight.grad

    compiled = torch.compile(f)
    for _ in range(6):
        start = torch.randn(4, 8)
        for one, other in zip(gradients(f, start), gradients(compiled, start), strict=True):
            assert torch.equal(one, other)
    assert _run(compiled).programs
