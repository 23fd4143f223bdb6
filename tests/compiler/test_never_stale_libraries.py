"""Programs for compiled functions that do what large libraries do: context variables, sets of objects, decorators."""

from __future__ import annotations

import copy
import datetime
import inspect
import sys
import sys as system
import time
import types
from collections.abc import Iterator
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_never_stale import Compile, Program, X, results

PROGRAMS: dict[str, Program] = {}
IN_PARTS_OR_NOT = {
    "a_variable_that_is_left_set", "a_variable_from_nowhere", "the_time_of_a_class", "classes_that_are_derived_later",
}  # fmt: skip
"""Programs that change what others see of a context variable, or ask for what nobody can compare: these calls are not
compiled whole.
"""


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


FACTOR: ContextVar[Any] = ContextVar("FACTOR", default=2.0)
EMPTY: ContextVar[Any] = ContextVar("EMPTY")


@program
def a_variable_that_changes(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: x * FACTOR.get())
    token = FACTOR.set(2.0)
    for _ in range(5):
        yield f(X)
    FACTOR.set(3.0)
    yield f(X)
    FACTOR.set(X)
    yield f(X)
    FACTOR.reset(token)
    yield f(X)


class Clock(datetime.datetime):
    """A class that asks for the time by a function of the class which it is derived from."""


@program
def the_time_of_a_class(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: (x * 2, str(Clock.now()), str(datetime.datetime.now())))
    seen: set[str] = set()
    for number in range(8):
        doubled, *times = f(X + number)
        assert seen.isdisjoint(times)
        seen.update(times)
        time.sleep(2e-6)
        yield doubled


@program
def classes_that_are_derived_later(compile: Compile) -> Iterator[Any]:
    class Base:
        pass

    f = compile(lambda x: x * len(Base.__subclasses__()))
    kept: list[Any] = []
    for number in range(8):
        kept.append(type(f"Derived{number}", (Base,), {}))
        yield f(X)


@program
def a_variable_of_another_context(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: x * FACTOR.get())
    for _ in range(5):
        yield f(X)
    other = copy_context()
    other.run(FACTOR.set, 5.0)
    yield other.run(f, X)
    yield f(X)


@program
def a_variable_without_a_value(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: x * EMPTY.get(7.0))
    for _ in range(5):
        yield f(X)
    token = EMPTY.set(1.0)
    yield f(X)
    EMPTY.reset(token)
    yield f(X)


@program
def a_list_in_a_variable(compile: Compile) -> Iterator[Any]:
    token = FACTOR.set([2.0])
    f = compile(lambda x: x * FACTOR.get()[0])
    for _ in range(5):
        yield f(X)
    FACTOR.get()[0] = 4.0
    yield f(X)
    FACTOR.reset(token)


@program
def a_variable_that_is_set_for_a_while(compile: Compile) -> Iterator[Any]:
    def inner(x: Any) -> Any:
        return x * FACTOR.get()

    def outer(x: Any) -> Any:
        token = FACTOR.set(3.0)
        try:
            return inner(x) + 1
        finally:
            FACTOR.reset(token)

    f = compile(outer)
    for _ in range(6):
        yield f(X)
        yield FACTOR.get()


@program
def a_variable_that_is_left_set(compile: Compile) -> Iterator[Any]:
    def step(x: Any) -> Any:
        FACTOR.set(FACTOR.get() + 1)
        return x * FACTOR.get()

    token = FACTOR.set(1.0)
    f = compile(step)
    for _ in range(8):
        yield f(X)
        yield FACTOR.get()
    FACTOR.reset(token)


@program
def a_variable_from_nowhere(compile: Compile) -> Iterator[Any]:
    """One that is found by a way that the walk over Python state does not take."""
    variable: ContextVar[float] = ContextVar("hidden", default=1.0)
    hidden = {id(variable): variable}
    key = id(variable)

    def read(x: Any, find: Any = hidden.get) -> Any:
        found = find(key)
        return x * found.get()

    f = compile(read)
    for _ in range(6):
        yield f(X)
    token = variable.set(5.0)
    yield f(X)
    variable.reset(token)


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by


@program
def a_set_of_objects(compile: Compile) -> Iterator[Any]:
    one, other = Scale(2.0), Scale(3.0)
    scales = {one}
    f = compile(lambda x: sum([x * each.by for each in scales]))
    for _ in range(5):
        yield f(X)
    one.by = 5.0
    yield f(X)
    scales.add(other)
    yield f(X)
    scales.discard(one)
    yield f(X)


@program
def a_set_of_classes(compile: Compile) -> Iterator[Any]:
    kinds = {nn.Linear, nn.ReLU}
    layer = nn.ReLU()
    f = compile(lambda x: layer(x) if type(layer) in kinds else x)
    for _ in range(5):
        yield f(X - 3)
    kinds.remove(nn.ReLU)
    yield f(X - 3)
    kinds.add(nn.ReLU)
    yield f(X - 3)


@program
def a_decorator_of_the_engine(compile: Compile) -> Iterator[Any]:
    factor = 2.0

    def frozen(x: Any) -> Any:
        return x * factor

    decorated = torch.no_grad()(frozen)
    f = compile(lambda x: decorated(x) + 1)
    x = X.clone().requires_grad_()
    for _ in range(5):
        yield f(x)
    factor = 3.0
    yield f(x)
    frozen.__code__ = (lambda x: x - factor).__code__
    yield f(x)


@program
def a_method_with_a_decorator_of_the_engine(compile: Compile) -> Iterator[Any]:
    class Layer(nn.Module):
        scale = 2.0

        @torch.no_grad()
        def forward(self, x: Any) -> Any:
            return x * self.scale

    layer = Layer()
    f = compile(lambda x: layer(x) + x)
    x = X.clone().requires_grad_()
    for _ in range(5):
        yield f(x)
    Layer.scale = 4.0
    yield f(x)
    Layer.forward = lambda self, x: x - 1
    yield f(x)


@program
def unions_of_classes(compile: Compile) -> Iterator[Any]:
    kinds: Any = int | float
    f = compile(lambda x, n: x * n if isinstance(n, kinds) else x)
    for n in (2, 2, 2, 2, 2, "a", 2.0):
        yield f(X, n)
    kinds = float | str
    yield f(X, 2)


SWITCH = types.ModuleType("switch")
vars(SWITCH).update(by=2.0)


def _by_name(x: Any) -> Any:
    return x * sys.modules["switch"].by


def _of(module: Any) -> Any:
    return module.modules["switch"]


def _handed_on(x: Any) -> Any:
    return x * _of(sys).by


def _under_another_name(x: Any) -> Any:
    return x * system.modules["switch"].by


def _by_another_module(x: Any) -> Any:
    return x * inspect.sys.modules["switch"].by  # type: ignore[attr-defined]


def _by_text(x: Any) -> Any:
    return x * getattr(sys, "mod" + "ules")["switch"].by


@pytest.mark.parametrize("function", [_by_name, _handed_on, _under_another_name, _by_another_module, _by_text])
def test_modules_that_are_looked_up_in_the_table_of_all(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "switch", SWITCH)
    monkeypatch.setattr(SWITCH, "by", 2.0, raising=False)
    made = Compiled(function)
    for _ in range(6):
        assert made(X).tolist() == (X * 2).tolist()
    monkeypatch.setattr(SWITCH, "by", 3.0, raising=False)
    assert made(X).tolist() == (X * 3).tolist()


@pytest.mark.parametrize(
    "body",
    [
        "import switch; return x * switch.by",
        "import switch as another; return x * another.by",
        "from switch import by; return x * by",
        "from switch import scaled; return scaled(x)",
        "from . import switch; return x * switch.by",
        "from .switch import scaled as another; return another(x)",
    ],
)
def test_modules_that_a_function_imports(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No global leads to these, nor to what they hold."""
    name, package = ("lamp.switch", "lamp") if "from ." in body else ("switch", "")
    module = types.ModuleType(name)
    exec("by = 2.0\ndef scaled(x, further=1.0): return x * by * further", vars(module))
    monkeypatch.setitem(sys.modules, name, module)
    if package:
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
        monkeypatch.setattr(sys.modules[package], "switch", module, raising=False)
    scope: dict[str, Any] = {"__package__": package, "__name__": "of_no_module"}
    exec(f"def function(x): {body}", scope)
    made = Compiled(scope["function"])
    for _ in range(6):
        assert made(X).tolist() == (X * 2).tolist()
    assert made.programs, made.reasons
    monkeypatch.setattr(module, "by", 3.0)
    assert made(X).tolist() == (X * 3).tolist()
    if "scaled" in body:
        monkeypatch.setattr(module.scaled, "__defaults__", (2.0,))
        assert made(X).tolist() == (X * 6).tolist()


def test_a_module_that_is_not_there_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scope: dict[str, Any] = {}
    exec(
        """
def function(x):
    try:
        import no_such_switch
    except ImportError:
        return x * 2
    return x * no_such_switch.by
""",
        scope,
    )
    made = Compiled(scope["function"])
    for _ in range(6):
        assert made(X).tolist() == (X * 2).tolist()
    module = types.ModuleType("no_such_switch")
    monkeypatch.setitem(sys.modules, "no_such_switch", module)
    monkeypatch.setattr(module, "by", 5.0, raising=False)
    assert made(X).tolist() == (X * 5).tolist()


def test_a_module_that_has_sys_is_no_hindrance() -> None:
    layer = nn.Sequential(nn.ReLU())
    made = Compiled(lambda x: x * len([*layer.modules()]) * len(inspect.signature(_of).parameters) * (sys.maxsize > 2))
    for _ in range(5):
        made(X)
    assert not any("module time" in each for each in made.reasons)


def test_functions_that_python_calls_by_itself() -> None:
    """`copy` calls one that no name in the code leads to."""
    scale = Scale(2.0)
    made = Compiled(lambda x: x * copy.copy(scale).by)
    for _ in range(6):
        assert made(X).tolist() == (X * 2).tolist()
    scale.by = 3.0
    assert made(X).tolist() == (X * 3).tolist()


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_is_as_it_stands(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    assert any(each.programs for each in made) is (name not in IN_PARTS_OR_NOT), [each.reasons for each in made]
