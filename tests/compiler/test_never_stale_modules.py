"""Programs that read modules: no more is compared than what they take of them, and nothing less."""

from __future__ import annotations

import functools
import math
import os
import random
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.compiler._compiled import Compiled

from .test_never_stale import Compile, Program, X, results

PROGRAMS: dict[str, Program] = {}
NOT_COMPILED = {"random_numbers_by_map", "random_numbers_of_a_partial", "the_time_in_a_local_name"}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def module(name: str, **content: Any) -> Any:
    made = types.ModuleType(name)
    vars(made).update(content)
    return made


INNER = module("made_up.inner", by=2.0, other=1.0)
LAZY = module("lazy", __getattr__=lambda name: 2.0)
OUTER = module("made_up", inner=INNER, add=lambda x: x + 1)


@pytest.fixture(autouse=True)
def _imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "made_up", OUTER)
    monkeypatch.setitem(sys.modules, "made_up.inner", INNER)


@program
def an_attribute_of_a_module(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: OUTER.add(x) * OUTER.inner.by)
    before = OUTER.add
    for _ in range(5):
        yield f(X)
    try:
        INNER.by = 3.0
        yield f(X)
        OUTER.add = lambda x: x - 1
        yield f(X)
        OUTER.inner = module("another", by=7.0)
        yield f(X)
    finally:
        INNER.by, OUTER.add, OUTER.inner = 2.0, before, INNER
    yield f(X)


@program
def an_import_inside(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        import made_up  # type: ignore[import-not-found]
        from made_up.inner import by  # type: ignore[import-not-found]
        from made_up.inner import other as another

        return made_up.add(x) * by + made_up.inner.other * another

    f = compile(f)
    for _ in range(5):
        yield f(X)
    for name in ("by", "other"):
        before = getattr(INNER, name)
        setattr(INNER, name, 11.0)
        try:
            yield f(X)
        finally:
            setattr(INNER, name, before)
    sys.modules["made_up.inner"] = module("made_up.inner", by=5.0, other=5.0)
    try:
        yield f(X)
    finally:
        sys.modules["made_up.inner"] = INNER


@program
def a_module_that_is_handed_on(compile: Compile) -> Iterator[Any]:
    def value(where: Any, name: str) -> Any:
        return getattr(where, name)

    f = compile(lambda x: x * value(INNER, "by") + [INNER][0].other)
    for _ in range(5):
        yield f(X)
    for name in ("by", "other"):
        before = getattr(INNER, name)
        setattr(INNER, name, 11.0)
        try:
            yield f(X)
        finally:
            setattr(INNER, name, before)


@program
def an_attribute_that_a_module_finds_by_itself(compile: Compile) -> Iterator[Any]:
    lazy = LAZY
    for f in (compile(lambda x: x * lazy.by), compile(lambda x: x * LAZY.by)):
        for _ in range(5):
            yield f(X)
        LAZY.by = 5.0
        yield f(X)
        del LAZY.by
        yield f(X)


@program
def what_a_module_leads_to_but_is_not_read(compile: Compile) -> Iterator[Any]:
    """`np.random`, `os.environ`, `time` and `random` are within reach, and one attribute is called like one of them."""
    settings = types.SimpleNamespace(random=2.0, time=math.pi, environ=1.0)
    f = compile(lambda x: x * settings.random + settings.time + settings.environ + np.float32(1) + len(os.sep))
    for _ in range(5):
        yield f(X)
    settings.random = 3.0
    yield f(X)


@program
def random_numbers_by_map(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: x * next(map(random.uniform, [1.0], [2.0])))
    for _ in range(6):
        random.seed(_)
        yield f(X)


@program
def random_numbers_of_a_partial(compile: Compile) -> Iterator[Any]:
    draw = functools.partial(random.random)
    f = compile(lambda x: x * draw())
    for _ in range(6):
        random.seed(_)
        yield f(X)


@program
def the_time_in_a_local_name(compile: Compile) -> Iterator[Any]:
    clock = iter(range(100))

    def f(x: Any) -> Any:
        now = time
        return x * 0 + (now.monotonic() > 0) + next(clock)

    f = compile(f)
    for _ in range(6):
        yield f(X)


@program
def a_function_under_vmap(compile: Compile) -> Iterator[Any]:
    table = {"by": 2.0}

    def each(x: Any) -> Any:
        return x * table["by"] + INNER.by

    f = compile(lambda x: torch.vmap(each)(x))
    for _ in range(5):
        yield f(X)
    table["by"] = 3.0
    yield f(X)
    INNER.by = 9.0
    try:
        yield f(X)
    finally:
        INNER.by = 2.0


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_is_as_plain(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    assert any(each.programs for each in made) is (name not in NOT_COMPILED), [each.reasons for each in made]
