"""`Sequential`, `ModuleList`, `ModuleDict`, `ParameterList`, `ParameterDict` against PyTorch's."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome, warned


def shown(action: Callable[[], Any], *phrases: str) -> Any:
    """What `action` gives, as text, or its error."""
    return outcome(lambda: repr(action()), *phrases)


def after(container: Any, change: Callable[[Any], Any]) -> str:
    change(container)
    return repr(container)


@differential
def test_sequential_indexing(T: Any) -> Any:
    nn = T.nn
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Tanh())
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh(), c=nn.ELU()))
    return (
        [shown(lambda i=i: model[i]) for i in (0, -1, True, slice(0, 2), slice(None, None, -1))],
        [shown(lambda i=i: model[i], f"index {i} is out of range") for i in (3, -4)],
        [shown(lambda i=i: model[i], "cannot be interpreted as an integer") for i in (1.0, "0")],
        repr(named),
        repr(named[1:]),
        len(named),
        [type(each).__name__ for each in named],
        named.a is named[0],
        after(named, lambda m: m.__setitem__(1, nn.SiLU())),
        after(named, lambda m: m.__delitem__(0)),
        list(dict(model.named_children())),
        [name for name in dir(model) if name.isdigit()],
        repr(nn.Sequential(nn.Sequential(), nn.ModuleList(), nn.ModuleDict(), None)),
    )


@differential
def test_sequential_changes(T: Any) -> Any:
    nn = T.nn

    def three() -> Any:
        return nn.Sequential(nn.ReLU(), nn.Tanh(), nn.ELU())

    def added(other: Any) -> Any:
        model = three()
        model += other
        return model

    def multiplied() -> Any:
        model = nn.Sequential(nn.ReLU())
        model *= 3
        return model, model[0] is model[2]

    return (
        [shown(lambda i=i: after(three(), lambda m: m.__delitem__(i))) for i in (0, -1, slice(0, 2), 7)],
        [shown(lambda i=i: three().pop(i)) for i in (0, -1, slice(0, 2), 7)],
        [shown(lambda i=i: three().insert(i, nn.SiLU())) for i in (0, 1, -1, 3)],
        [shown(lambda i=i: three().insert(i, nn.SiLU()), "Index out of range") for i in (5, -4)],
        shown(lambda: three().insert(0, 3), "module should be of type"),
        shown(lambda: three().append(nn.SiLU())),
        shown(lambda: three().append(3), "int is not a Module subclass"),
        shown(lambda: three().extend([nn.SiLU(), nn.ReLU()])),
        shown(lambda: three().extend(3)),
        shown(lambda: three() + three()),
        [shown(lambda o=o: three() + o, "add operator supports only objects of Sequential") for o in (1, [nn.ReLU()])],
        shown(lambda: three() * 2),
        shown(lambda: 2 * three()),
        shown(lambda: three() * 0, "Non-positive multiplication factor 0"),
        shown(lambda: three() * 1.5, "unsupported operand type(s) for *"),
        shown(multiplied),
        shown(lambda: added(three())),
        shown(lambda: added([nn.ReLU()]), "add operator supports only"),
        [shown(lambda v=v: nn.Sequential(v), "is not a Module subclass") for v in (3, [nn.ReLU()], {"a": nn.ReLU()})],
    )


@differential
def test_sequential_runs_its_modules_in_order(T: Any) -> Any:
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2), nn.Tanh()))
    x = T.ones(5, 3, requires_grad=True)
    y = model(x)
    y.sum().backward()
    return y, x.grad, model[0].weight.grad, list(model.state_dict())


@differential
def test_module_list(T: Any) -> Any:
    nn = T.nn

    def three() -> Any:
        return nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.ELU()])

    nested = nn.ModuleList(
        [nn.ReLU(), nn.ReLU(), nn.Linear(2, 2), nn.Linear(2, 2), nn.Tanh(), nn.ModuleList([nn.ReLU()] * 3)]
    )
    return (
        repr(nested),
        [shown(lambda i=i: three()[i]) for i in (0, -1, slice(1, 3), 3, -4, "0", 1.0)],
        [shown(lambda i=i: after(three(), lambda m: m.__delitem__(i))) for i in (0, -1, slice(0, 2), 7)],
        [
            shown(lambda i=i, v=v: after(three(), lambda m: m.__setitem__(i, v)))
            for i, v in ((0, nn.SiLU()), (-1, None))
        ],
        shown(lambda: after(three(), lambda m: m.__setitem__(5, nn.ReLU())), "index 5 is out of range"),
        shown(lambda: after(three(), lambda m: m.__setitem__(0, 3)), "cannot assign 'int' as child module '0'"),
        [shown(lambda i=i: after(three(), lambda m: m.insert(i, nn.SiLU()))) for i in (0, 1, 9)],
        [shown(lambda i=i: three().pop(i)) for i in (0, -1, slice(0, 2), 7)],
        shown(lambda: three() + [nn.SiLU()]),
        shown(lambda: three() + 3),
        shown(lambda: three().append(nn.SiLU())),
        shown(lambda: three().append(3), "int is not a Module subclass"),
        shown(lambda: three().extend(3), "ModuleList.extend should be called with an iterable, but got int"),
        shown(lambda: nn.ModuleList(3), "ModuleList.extend should be called with an iterable, but got int"),
        shown(lambda: nn.ModuleList([None, nn.ReLU()])),
        shown(lambda: three()(1), 'Module [ModuleList] is missing the required "forward" function'),
        [type(each).__name__ for each in three()],
        len(three()),
    )


@differential
def test_module_dict(T: Any) -> Any:
    nn = T.nn

    def two() -> Any:
        return nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})

    return (
        repr(two()),
        repr(nn.ModuleDict([("a", nn.ReLU()), ["b", nn.Tanh()]])),
        list(two()),
        repr(list(two().items())),
        repr(list(two().values())),
        list(two().keys()),
        len(two()),
        "a" in two(),
        "z" in two(),
        shown(lambda: two()["b"]),
        shown(lambda: two().pop("b")),
        shown(lambda: after(two(), lambda m: m.update({"c": nn.SiLU(), "a": nn.ELU()}))),
        shown(lambda: after(two(), lambda m: m.update(nn.ModuleDict({"z": nn.SiLU()})))),
        shown(lambda: after(two(), lambda m: m.clear())),
        shown(lambda: after(two(), lambda m: m.__delitem__("b"))),
        [shown(lambda a=a: getattr(two(), a)("z")) for a in ("__getitem__", "pop", "__delitem__")],
        shown(lambda: nn.ModuleDict([3]), "ModuleDict update sequence element #0 should be Iterable"),
        shown(lambda: nn.ModuleDict([("a",)]), "ModuleDict update sequence element #0 has length 1; 2 is required"),
        shown(lambda: nn.ModuleDict(3), "ModuleDict.update should be called with an iterable of key/value pairs"),
        shown(lambda: nn.ModuleDict({"a": 3}), "int is not a Module subclass"),
        shown(lambda: nn.ModuleDict({1: nn.ReLU()}), "module name should be a string. Got int"),
        shown(lambda: nn.ModuleDict({"keys": nn.ReLU()}), "attribute 'keys' already exists"),
    )


@differential
def test_parameter_list(T: Any) -> Any:
    nn = T.nn

    def some() -> Any:
        return nn.ParameterList(
            [nn.Parameter(T.ones(2, 3)), T.zeros(2), "x", 3, nn.Parameter(T.zeros(3), requires_grad=False)]
        )

    def extended(values: Any) -> Any:
        values_list = some()
        values_list += values
        return values_list

    changed = some()
    changed[0] = T.ones(1)
    return (
        repr(some()),
        repr(nn.ParameterList()),
        repr(nn.Sequential(some(), nn.ParameterList([T.ones(1)]))),
        some()[1],
        repr(some()[1:3]),
        [shown(lambda i=i: some()[i]) for i in (-1, 2, 9, "0")],
        repr(changed),
        changed[0],
        list(some())[2:4],
        len(some()),
        shown(lambda: some().append(T.ones(1))),
        shown(lambda: some().extend([1, T.ones(2)])),
        [shown(lambda v=v: some().extend(v), "ParameterList.extend should be called") for v in (1, T.ones(1))],
        shown(lambda: extended([1])),
        shown(lambda: some()(1), "ParameterList should not be called."),
        shown(lambda: some().__setitem__(20, T.ones(1)), "index 20 is out of range"),
        list(some().state_dict()),
        [(name, each.requires_grad) for name, each in some().named_parameters()],
        shown(lambda: nn.ParameterList([T.zeros(1, dtype=T.int64)])),
    )


@differential
def test_parameter_dict(T: Any) -> Any:
    nn = T.nn

    def some() -> Any:
        return nn.ParameterDict({"b": nn.Parameter(T.ones(2)), "a": T.ones(3), "c": 4})

    def inplace() -> Any:
        values = some()
        values |= {"k": 1}
        return values

    def defaulted(*args: Any) -> Any:
        values = some()
        return values.setdefault(*args), values

    return (
        repr(some()),
        repr(nn.ParameterDict([("b", T.ones(1)), ("a", 2)])),
        repr(nn.ParameterDict({"a": T.ones(1)})),
        repr(nn.ParameterDict(OrderedDict(b=1, a=2))),
        list(some().keys()),
        list(reversed(some())),
        repr(list(some().items())),
        repr(list(some().values())),
        [shown(lambda n=n, a=a: getattr(some(), n)(*a)) for n, a in (("pop", ["c"]), ("popitem", []), ("copy", []))],
        [shown(lambda a=a: some().get(*a)) for a in (["a"], ["z"], ["z", 5])],
        [shown(lambda a=a: defaulted(*a)) for a in (["a", 1], ["n", T.ones(1)], ["m"])],
        shown(lambda: some().fromkeys(["x", "y"], T.ones(1))),
        shown(lambda: some() | nn.ParameterDict({"k": 1})),
        shown(lambda: some() | {"k": 1}),
        shown(inplace),
        shown(lambda: after(some(), lambda p: p.clear())),
        shown(lambda: after(some(), lambda p: p.__setitem__("a", T.zeros(5)))),
        "a" in some(),
        len(some()),
        shown(lambda: some()["z"], "'ParameterDict' object has no attribute 'z'"),
        shown(lambda: some()[1], "cannot be used as a key as it is not a string (type is 'int')"),
        shown(lambda: some().__setitem__(3, 1), "cannot be used as a key as it is not a string"),
        shown(lambda: some().__delitem__("z")),
        shown(lambda: nn.ParameterDict().popitem()),
        shown(lambda: nn.ParameterDict([("a",)]), "ParameterDict update sequence element #0 has length 1"),
        shown(lambda: nn.ParameterDict([3]), "ParameterDict update sequence element #0 should be Iterable"),
        shown(lambda: nn.ParameterDict(3), "update should be called with an iterable of key/value pairs"),
        shown(lambda: nn.ParameterDict({"x.y": T.ones(1)}), "parameter name can"),
        shown(lambda: nn.ParameterDict({"keys": T.ones(1)}), "attribute 'keys' already exists"),
        shown(lambda: some()(1), "ParameterDict should not be called."),
        list(some().state_dict()),
    )


@differential
def test_container(T: Any) -> Any:
    return warned(lambda: repr(T.nn.Container(a=T.nn.ReLU())), "`nn.Container` is deprecated")


@differential
def test_containers_are_copied_and_pickled(T: Any) -> Any:
    T.manual_seed(0)
    nn = T.nn
    model = nn.ModuleDict(
        {
            "list": nn.ModuleList([nn.Linear(2, 2), nn.ReLU()]),
            "numbers": nn.ParameterList([T.ones(2), 3]),
            "named": nn.ParameterDict({"a": T.ones(1), "b": "text"}),
            "run": nn.Sequential(OrderedDict(first=nn.Linear(2, 3, bias=False))),
        }
    )
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    return [(repr(each), each.state_dict(), each["list"][0].weight is model["list"][0].weight) for each in copies]


def test_an_error_names_the_path_of_the_module() -> None:
    nn = flambeau.nn
    block = nn.ModuleDict({"fc1": nn.Sequential(nn.Linear(3, 2))})

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Identity(), block])

        def forward(self, x: Any) -> Any:
            return self.layers[1]["fc1"](x)

    model = nn.Sequential(OrderedDict(encoder=Encoder()))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied") as caught:
        model(flambeau.ones(1, 5))
    assert caught.value.__notes__ == ["in module `encoder.layers.1.fc1.0` (Linear) of Sequential"]
