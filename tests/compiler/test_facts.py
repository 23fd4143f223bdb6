"""Facts that stand for checks: they tell apart what these tell apart; where one does not hold, the checks decide."""

from __future__ import annotations

import functools
import sys
import threading
from collections import OrderedDict
from types import FunctionType
from typing import Any, NamedTuple

import pytest

import flambeau as torch
from flambeau._backends.tiers import generated
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.capture import guards as _state
from flambeau.compiler.capture.identity_guards import Facts

ONE_THREAD_AT_A_TIME = getattr(sys, "_is_gil_enabled", lambda: True)()
pytestmark = pytest.mark.skipif(
    generated("identities") is None or not ONE_THREAD_AT_A_TIME,
    reason="no code is generated, or other threads may change what it looks at",
)


def holds(facts: Facts) -> bool:
    """Whether facts hold: asked twice, for the table knows from the first time which dictionaries are as they were."""
    return facts.all_hold() and facts.all_hold()


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value


class Place:
    def __init__(self) -> None:
        self.number = 7.5
        self.hooks: Any = OrderedDict()
        self.parts = {"a": 1, "b": 2}


def known_of(place: Place) -> Facts:
    facts = Facts()
    own = vars(place)
    assert facts.is_object(facts.item("x", own, "number"), place.number)
    assert facts.is_container(facts.item("x", own, "hooks"), place.hooks)
    assert facts.is_container(facts.item("x", own, "parts"), place.parts)
    assert facts.has_keys(own)
    assert facts.is_of_class(place)
    assert facts.has_attributes_in(place, own)
    assert facts.is_absent(own, "more")
    assert facts.has_count(vars(Place))
    return facts


@pytest.mark.parametrize(
    "change",
    [
        lambda place: setattr(place, "number", 8.5),
        lambda place: place.hooks.update(a=1),
        lambda place: setattr(place, "hooks", {}),
        lambda place: setattr(place, "parts", {"a": 1, "c": 2}),
        lambda place: place.parts.update(c=3),
        lambda place: place.parts.update(a=place.parts.pop("a")),
        lambda place: setattr(place, "more", 1),
        lambda place: place.__dict__.update(number=place.__dict__.pop("number")),
        lambda place: delattr(place, "number"),
        lambda place: setattr(place, "__dict__", dict(vars(place))),
        lambda place: setattr(place, "__class__", type("Other", (Place,), {})),
    ],
)
def test_every_fact_can_cease_to_hold(change: Any) -> None:
    place = Place()
    facts = known_of(place)
    assert holds(facts)
    change(place)
    assert not holds(facts)


def test_no_fact_holds_while_other_threads_may_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = known_of(Place())
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert facts.table is None
    assert not holds(facts)


def test_a_dictionary_that_changes_and_is_as_before() -> None:
    place = Place()
    facts = known_of(place)
    for _ in range(3):
        assert holds(facts)
        place.parts["c"] = 3
        assert not holds(facts)
        del place.parts["c"]


def test_a_store_that_the_interpreter_has_specialised_is_seen() -> None:
    place = Place()

    def store(number: float) -> None:
        place.number = number

    for _ in range(100):
        store(place.number)
    facts = known_of(place)
    assert holds(facts)
    store(8.5)
    assert not holds(facts)


def test_another_empty_container_is_as_good_until_it_has_an_item() -> None:
    place = Place()
    facts = known_of(place)
    assert holds(facts)
    place.hooks = OrderedDict()
    assert holds(facts)
    place.hooks["a"] = 1
    assert not holds(facts)
    del place.hooks["a"]
    assert holds(facts)


def test_a_class_that_gets_another_attribute() -> None:
    kind: Any = type("Kind", (), {"a": 1})
    facts = Facts()
    assert facts.has_count(vars(kind))
    assert holds(facts)
    kind.b = 2
    assert not holds(facts)


def test_what_is_no_plain_dictionary_of_texts_gives_no_facts() -> None:
    facts = Facts()
    assert not facts.has_keys({1: 2})
    assert not facts.has_keys(OrderedDict(a=1))
    assert not facts.is_object("x", 1)
    assert not facts.is_container(facts.item("x", {"a": [1]}, "a"), [1])


def compiled(function: Any, *args: Any) -> Compiled:
    made = Compiled(function)
    for _ in range(4):
        made(*args)
    assert len(made.programs) == 1, made.reasons
    return made


def test_an_equal_number_is_as_good_as_the_same_one() -> None:
    holder = Holder(1234.5)
    made = compiled(lambda x: x * holder.value, torch.ones(3))
    holder.value = float("1234.5")
    assert made(torch.ones(3)).tolist() == [1234.5] * 3
    assert len(made.programs) == 1
    holder.value = 2.0
    for _ in range(2):
        assert made(torch.ones(3)).tolist() == [2.0] * 3
    assert len(made.programs) == 2


def test_checks_that_facts_stand_for_are_defined_when_they_are_needed() -> None:
    holder = Holder(1234.5)
    made = compiled(lambda x: x * holder.value, torch.ones(3))
    program: Any = made.programs[0]
    assert not hasattr(program.__globals__["all_checks"], "__code__")
    holder.value = float("1234.5")
    made(torch.ones(3))
    assert hasattr(program.__globals__["all_checks"], "__code__")


def test_a_tensor_under_two_names_that_becomes_two() -> None:
    """The second name still leads to what it led to."""
    shared = torch.ones(3)
    one, other = Holder(shared), Holder(shared)

    def function() -> Any:
        one.value.mul_(2)
        return other.value + 0

    made = compiled(function)
    assert made().tolist() == [32.0] * 3
    one.value = torch.ones(3)
    before = other.value.tolist()
    assert made().tolist() == before


def test_dictionaries_of_attributes_that_are_exchanged() -> None:
    holder = Place()
    made = compiled(lambda x: x * holder.number, torch.ones(2))
    holder.__dict__ = {**vars(holder), "number": 3.0}
    assert made(torch.ones(2)).tolist() == [3.0, 3.0]


def test_what_threads_have_of_their_own_is_no_fact() -> None:
    """A fact that never holds would send every call through all checks."""
    own = threading.local()
    own.number = 2.0
    made = compiled(lambda x: x * own.number, torch.ones(2))
    program: Any = made.programs[0]
    assert made(torch.ones(2)).tolist() == [2.0, 2.0]
    assert not hasattr(program.__globals__["all_checks"], "__code__")  # no call has needed them
    found: list[Any] = []

    def elsewhere() -> None:
        own.number = 5.0
        found.append(made(torch.ones(2)).tolist())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [[5.0, 5.0]]
    own.number = 3.0
    assert made(torch.ones(2)).tolist() == [3.0, 3.0]


def test_programs_for_all_sizes_are_checked_by_facts() -> None:
    holder = Place()
    made = Compiled(lambda x: x * holder.number, dynamic=True)
    for length in (2, 3, 2, 3, 4):
        made(torch.ones(length))
    program: Any = made.programs[0]
    assert program.__globals__["facts"] is not None
    assert not hasattr(program.__globals__["all_checks"], "__code__")
    holder.number = 7.0
    assert made(torch.ones(3)).tolist() == [7.0] * 3


def test_arguments_are_compared_first() -> None:
    holder = Place()
    made = compiled(lambda x: x * holder.number, torch.ones(2))
    program: Any = made.programs[0]
    assert "args" in vars(program)["checks"][1]  # behind the settings


def reasons_of(function: Any) -> set[str]:
    made = Compiled(function)
    for _ in range(4):
        made(torch.zeros(2))
    return set(made.reasons)


def test_how_much_a_call_may_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that facts stand for, which Python does not make one by one, count for less."""
    named, listed = Holder({f"n{number}": float(number) for number in range(200)}), Holder([*map(float, range(200))])
    too_much = {"it depends on too much Python state"}
    monkeypatch.setattr(_state, "_MOST_IN_PYTHON", 100)
    assert reasons_of(lambda x: x + named.value["n199"]) == set()
    assert reasons_of(lambda x: x + listed.value[199]) == too_much
    monkeypatch.setattr(_state, "_MOST", 100)
    assert reasons_of(lambda x: x + named.value["n199"]) == too_much


def called(x: Any, more: Any = 2, *, least: Any = 1) -> Any:
    return (x * more).clamp(least)


def fields_of(owner: Any, *names: str) -> Facts:
    facts = Facts()
    for name in names:
        value, place = getattr(owner, name), facts.field("x", owner, name)
        assert facts.is_container(place, value) if type(value) in (tuple, dict) else facts.is_object(place, value)
        for key in value if type(value) is dict else ():
            assert facts.is_object(facts.item("x", value, key), value[key])
    return facts


def closure(value: Any) -> Any:
    return lambda: value


@pytest.mark.parametrize(
    ("make", "names", "change"),
    [
        (lambda: called, ("__code__",), lambda f: setattr(f, "__code__", (lambda x, more=0, *, least=0: x).__code__)),
        (lambda: called, ("__defaults__",), lambda f: setattr(f, "__defaults__", (3,))),
        (lambda: called, ("__defaults__",), lambda f: setattr(f, "__defaults__", None)),
        (lambda: called, ("__kwdefaults__",), lambda f: setattr(f, "__kwdefaults__", {"least": 3})),
        (lambda: called, ("__kwdefaults__",), lambda f: f.__kwdefaults__.update(least=3)),
        (lambda: closure, ("__defaults__", "__kwdefaults__"), lambda f: setattr(f, "__defaults__", (3,))),
        (lambda: closure, ("__defaults__", "__kwdefaults__"), lambda f: setattr(f, "__kwdefaults__", {"value": 3})),
        (
            lambda: functools.partial(called, more=3),
            ("func", "args", "keywords"),
            lambda f: f.__setstate__((print, (), {"more": 3}, {})),
        ),
        (lambda: functools.partial(called, more=3), ("func", "args", "keywords"), lambda f: f.keywords.update(more=4)),
        (lambda: functools.partial(called), ("func", "args", "keywords"), lambda f: f.keywords.update(more=4)),
        (lambda: closure(called).__closure__[0], ("cell_contents",), lambda c: setattr(c, "cell_contents", None)),
    ],
)
def test_what_objects_have_in_their_own_memory(make: Any, names: tuple[str, ...], change: Any) -> None:
    owner = make()
    if isinstance(owner, FunctionType):
        owner = FunctionType(owner.__code__, owner.__globals__, "copy", owner.__defaults__, owner.__closure__)
        owner.__kwdefaults__ = make().__kwdefaults__ and dict(make().__kwdefaults__)
    facts = fields_of(owner, *names)
    assert holds(facts)
    change(owner)
    assert not holds(facts)


def test_properties_and_methods_of_classes_are_fields() -> None:
    def getter(self: Any) -> int:
        return 1

    fields_of(property(getter), "fget", "fset", "fdel")
    fields_of(staticmethod(getter), "__func__")
    fields_of(classmethod(getter), "__func__")


def test_sets_without_items() -> None:
    own: dict[str, Any] = {"names": set()}
    facts = Facts()
    assert facts.is_container(facts.item("x", own, "names"), own["names"])
    for _ in range(2):
        assert holds(facts)
        own["names"].add("a")
        assert not holds(facts)
        own["names"].remove("a")
    assert holds(facts)
    own["names"] = set()
    assert not holds(facts)


def test_classes_and_functions_as_keys() -> None:
    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            return True

        def __hash__(cls) -> int:
            return 1

    own: dict[Any, Any] = {int: NamedTuple("Pair", [("a", int)])(1), called: [2], "a": called}
    facts = Facts()
    assert facts.has_keys(own)
    assert facts.is_container(facts.item("x", own, int), own[int])
    assert facts.is_object(facts.item("x", own, "a"), called)
    assert holds(facts)
    own[int] = (1,)
    assert not holds(facts)
    assert not Facts().has_keys({Meta("Odd", (), {}): 1})


def test_what_is_looked_up_in_a_registry_of_classes_is_never_stale() -> None:
    registry: dict[Any, Any] = {Holder: functools.partial(called, more=3), Place: functools.partial(called, more=4)}
    number = Holder(2.0)

    def function(x: Any) -> Any:
        return registry[type(number)](x) + registry[Place](x)

    x = torch.tensor([1.0, 2.0])
    made = compiled(function, x)
    for change in (
        lambda: registry[Place].keywords.update(more=5),
        lambda: registry.update({Holder: functools.partial(called, more=7)}),
        lambda: setattr(called, "__kwdefaults__", {"least": 12}),
        lambda: registry[Holder].__setstate__((called, (), {"more": 9}, {})),
    ):
        change()
        assert made(x).tolist() == function(x).tolist()
    called.__kwdefaults__ = {"least": 1}
