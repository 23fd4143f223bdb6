"""Graph breaks at any depth: every function that is in the midst of a call is split where it breaks, at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler import _compiled
from flambeau.compiler._compiled import Compiled

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def recordings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions whose calls are recorded, as they come."""
    found: list[str] = []
    record = Compiled._recorded

    def recorded(self: Any, *args: Any) -> Any:
        found.append(self._name().split(" ")[0])
        return record(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", recorded)
    return found


class Experts(nn.Module):
    """Layers that elements choose."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.gate = nn.Linear(3, count)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(count)])

    def forward(self, x: Any) -> Any:
        chosen = self.gate(x).argmax(-1)
        total = torch.zeros_like(x)
        for number in chosen.unique():
            (rows,) = torch.where(chosen == number)
            total.index_add_(0, rows, self.layers[number](x[rows]).relu())
        return total


class WithOwnCall(nn.Module):
    """A module whose call does something first, as those of libraries do."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.training and kwargs.get("never"):
            raise RuntimeError
        return super().__call__(*args, **kwargs)


class Layer(WithOwnCall):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.experts = nn.Linear(3, 3), Experts(4)

    def forward(self, x: Any) -> Any:
        y = torch.tanh(self.before(x)) * 2
        y = y + self.experts(y)
        return torch.sigmoid(y) + x


class Model(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(depth)])
        self.head = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x).softmax(-1)


@pytest.mark.parametrize("trains", [False, True])
def test_experts_that_elements_choose(monkeypatch: pytest.MonkeyPatch, trains: bool) -> None:
    monkeypatch.setattr("flambeau.compiler.capture.effort._QUIET_CALLS", 10**6)  # whatever is quicker here
    torch.manual_seed(0)
    model = Model(2)
    compiled = Compiled(model)
    parameters = list(model.parameters())
    for turn in range(12):
        x = torch.randn(6, 3, generator=torch.Generator().manual_seed(turn))
        found: list[Any] = []
        for call in (model, compiled):
            with torch.set_grad_enabled(trains):
                y = call(x)
            grads = torch.autograd.grad(y.square().sum(), parameters, allow_unused=True) if trains else []
            found.append([y.tolist(), *[each if each is None else each.tolist() for each in grads]])
        assert found[0] == found[1], turn
    assert compiled.parts is not None
    names = [each._name() for each in _all_parts(compiled)]
    assert sum(["Experts" in each for each in names]) == 2, names
    assert (
        sum(
            [
                "forward_part" in each and len(part.programs) > 0
                for each, part in zip(names, _all_parts(compiled), strict=True)
            ]
        )
        >= 4
    )
    assert len([each for each in compiled.all_reasons if "are others each time" in each]) <= 4


def _all_parts(compiled: Compiled) -> list[Compiled]:
    inside = [] if compiled.parts is None else compiled.parts.compiled
    return [each for part in inside for each in (part, *_all_parts(part))]


def outermost(x: Any) -> Any:
    y = x * 2 + 1
    y = outer(y)
    return y.exp() + x


def outer(x: Any) -> Any:
    y = x.relu() * 3
    y = inner(y)
    return torch.tanh(y) - x


def inner(x: Any) -> Any:
    y = x - 1
    print(end="")
    return y * y


def tried(x: Any) -> Any:
    y = x * 3 + 1
    try:
        y = outer(y)
    except TypeError:
        y = y - 1
    return y.relu() * 2


@pytest.mark.parametrize(("function", "depth"), [(outermost, 3), (tried, 3)])
def test_all_functions_on_the_way_are_split_at_once(
    monkeypatch: pytest.MonkeyPatch, function: Callable[[Any], Any], depth: int
) -> None:
    monkeypatch.setattr("flambeau.compiler.capture.effort._QUIET_CALLS", 10**6)
    found = recordings(monkeypatch)
    expected = function(X)
    g = Compiled(function)
    for _ in range(8):
        assert g(X).tolist() == expected.tolist()
    assert not {"outermost", "tried", "outer", "inner"} & set(found)  # none of them was recorded whole
    names = [each._name() for each in _all_parts(g)]
    assert sum(["part" not in each for each in names]) == depth - 1
    assert len(g.all_programs) == 2 * depth


def raises(x: Any) -> Any:
    y = x * 3
    try:
        y = y + 1
        y = fails(y)
    except TypeError as error:
        return y * 2, str(error)
    return y, ""


def fails(x: Any) -> Any:
    print(end="")
    if x.sum() > 0:
        raise TypeError("too much")
    return x.relu()


def test_handlers_see_what_the_statements_before_have_set() -> None:
    g = Compiled(raises)
    for turn in range(10):
        x = X * (-1) ** turn
        found, expected = g(x), raises(x)
        assert (found[0].tolist(), found[1]) == (expected[0].tolist(), expected[1])


def test_reads_in_a_loop_are_told_apart() -> None:
    """What one line reads in several turns of a loop differs within a call, and is the same in the next."""
    places = torch.tensor([0, 2, 1])

    def f(x: Any) -> Any:
        for each in places:
            x = x.roll(int(each), -1) * 2
        return x

    g = Compiled(f)
    for _ in range(6):
        assert g(X).tolist() == f(X).tolist()
    assert len(g.programs) == 1
    assert g.parts is None
    places[1] = 0
    for _ in range(4):
        assert g(X).tolist() == f(X).tolist()
    assert len(g.programs) == 2
    places.copy_(torch.tensor([1, 1, 2]))  # several at once: they are data
    for turn in range(4):
        places.add_(1).remainder_(3)
        assert g(X).tolist() == f(X).tolist(), turn
    assert any("are others each time" in each for each in g.reasons)


def test_parts_without_ops_are_no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flambeau.compiler.capture.effort._QUIET_CALLS", 10**6)
    names = {"a": 1}

    def f(x: Any) -> Any:
        found = dict(names)
        found.update(b=2)
        print(end="")
        return x * found["a"] + found["b"]

    g = _compiled.Compiled(f)
    for _ in range(10):
        assert g(X).tolist() == (X + 2).tolist()
    assert len(g.all_programs) == 1
    names["a"] = 3
    assert g(X).tolist() == (X * 3 + 2).tolist()


def test_a_view_of_an_argument_is_one() -> None:
    def f(x: Any, w: Any) -> Any:
        flat = x.view(-1, 3)
        return flat, (flat * 2).relu() @ w, x.transpose(0, 1), x[0]

    g, w = Compiled(f), torch.ones(3, 3)
    for turn in range(6):
        x = torch.randn(2, 4, 3)
        flat, product, turned, row = g(x, w)
        assert product.tolist() == f(x, w)[1].tolist()
        for each in (flat, turned, row):
            assert each._base is x
        assert (flat.shape, turned.shape, row.shape) == ((8, 3), (4, 2, 3), (4, 3))
        flat.add_(1)
        row.mul_(turn)
        assert (x._version, flat._version, turned._version, row._version) == (2, 2, 2, 2)
        assert turned.tolist() == x.transpose(0, 1).tolist()
        assert row.tolist() == x[0].tolist()
    assert len(g.programs) == 1
    base = torch.randn(2, 4, 6)
    for _ in range(4):  # an argument that is a view itself: the result is one of the same base
        given = base[..., :3].contiguous().as_strided((2, 4, 3), (12, 3, 1))
        assert g(given, w)[0]._base is f(given, w)[0]._base
    leaf = torch.randn(2, 4, 3, requires_grad=True)
    for _ in range(6):
        flat, product, _, _ = g(leaf, w)
        (found,) = torch.autograd.grad(flat.sum() * 2 + product.sum(), leaf)
        flat, product, _, _ = f(leaf, w)
        assert found.tolist() == torch.autograd.grad(flat.sum() * 2 + product.sum(), leaf)[0].tolist()
    with torch.no_grad():
        for _ in range(4):
            assert g(leaf, w)[0].requires_grad is f(leaf, w)[0].requires_grad


def test_a_call_with_many_reads_is_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = recordings(monkeypatch)

    def f(x: Any) -> Any:
        y = x * 2 + 1
        for each in x.argmax(-1):
            y = y.roll(int(each), -1)
        return y.relu() * x

    g = Compiled(f)
    for turn in range(6):
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(turn))
        assert g(x).tolist() == f(x).tolist()
    assert found[0].endswith("f")
    assert all("part" in each for each in found[1:]), found
    assert g.parts is not None


def test_programs_that_are_seldom_right_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts with other sizes in each call: to look whether a program is right takes longer than what they do."""
    monkeypatch.setattr("flambeau.compiler.capture.effort._QUIET_CALLS", 10**6)

    def f(x: Any) -> Any:
        x = x * 2 + 1
        print(end="")
        return x.relu() * 2

    g = Compiled(f)
    for turn in range(90):
        x = torch.randn(1 + 37 * turn % 97)
        assert g(x).tolist() == f(x).tolist(), turn
    reasons = [each for each in g.all_reasons if "calls are those that its programs are for" in each]
    assert len(reasons) == 2, g.all_reasons
    assert not g.all_programs
