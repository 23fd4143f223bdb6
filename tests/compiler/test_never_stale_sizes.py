"""Programs for compiled functions whose inputs have many sizes: one program has them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.capture.effort import Effort
from flambeau.compiler.tools.explain import explanation_of

from .test_never_stale import seen

F = nn.functional
SIZES = [(2, 3), (4, 5), (1, 3), (3, 1), (6, 2), (2, 7), (5, 5), (3, 4), (8, 3), (1, 1), (0, 3), (3, 0)]
TABLE = torch.linspace(-1, 1, 44).reshape(11, 4)


def of(batch: int, length: int) -> Any:
    return torch.arange(batch * length, dtype=torch.float32).reshape(batch, length) / 7 - 1


def attention(x: Any) -> Any:
    rows = x[..., None] * torch.ones(4)
    scores = rows @ rows.transpose(-2, -1) / 2
    mask = torch.ones(x.shape[1], x.shape[1]).tril() == 0
    return scores.masked_fill(mask, -1e9).softmax(-1) @ rows


def unrolled(x: Any) -> Any:
    total = x * 0
    for position in range(x.shape[1]):
        total = total + x[:, position : position + 1] * position
    return total


def by_size(x: Any) -> Any:
    return x * 2 if x.shape[0] > 3 else x - 1


def by_equality(x: Any) -> Any:
    return x @ x if x.shape[0] == x.shape[1] else x @ x.t()


def python_numbers(x: Any) -> Any:
    return x * (x.shape[0] // 2) + min(x.shape[1], 4) + len(x) ** 0.5


def told(x: Any) -> Any:
    return x.sum(), x.shape[1], x.numel(), float(len(x))


def embedded(x: Any) -> Any:
    return F.embedding((x * 7 + 7).long() % 11, TABLE).sum(1)


def grown(x: Any) -> Any:
    return torch.cat([x, torch.zeros(x.shape[0], 2), torch.full((x.shape[0], x.shape[1]), 3.0)], 1)


def cut(x: Any) -> Any:
    return x[: len(x) // 2 + 1, ::2] * torch.arange(x.shape[1])[::2]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: (x * 2 + 1).relu() / 3,
    "reductions": lambda x: x.mean() + x.sum(0).sum() + (x * x).mean(1).sum(),
    "views": lambda x: x.reshape(-1, 1, x.shape[1]).transpose(0, 2).flatten(1) * 2,
    "flattened": lambda x: x.flatten().view(-1, 1).expand(-1, 3).sum(1),
    "products": lambda x: F.linear(x, torch.ones(2, x.shape[1])) @ torch.ones(2, 3),
    "attention": attention,
    "unrolled": unrolled,
    "decisions about sizes": by_size,
    "equal sizes": by_equality,
    "numbers of Python": python_numbers,
    "results that tell": told,
    "embedding": embedded,
    "new tensors": grown,
    "slices": cut,
    "norms": lambda x: F.layer_norm(x, x.shape[1:]) + x.softmax(-1),
    "noise": lambda x: F.dropout(x, 0.5) + torch.rand(x.shape) + torch.randn_like(x),
}


def outcome(function: Any, given: Any) -> Any:
    torch.manual_seed(0)
    leaf = given.clone().requires_grad_()
    try:
        result = function(leaf)
        first = result[0] if isinstance(result, tuple) else result
        if first.requires_grad:
            first.sum().backward()
    except Exception as error:
        return type(error), str(error)[:50]
    return seen(result), None if leaf.grad is None else seen(leaf.grad)


SOME = ("reductions", "attention", "decisions about sizes")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "dynamic"),
    [*[(name, True) for name in FUNCTIONS], *[(name, each) for name in SOME for each in (None, False)]],
)
def test_sizes_are_never_stale(name: str, dynamic: bool | None) -> None:
    function = FUNCTIONS[name]
    compiled = Compiled(function, dynamic=dynamic)
    for _ in range(3):
        for each in SIZES:
            assert outcome(compiled, of(*each)) == outcome(function, of(*each)), each
    for each in SIZES:  # the elements are others
        assert outcome(compiled, of(*each) * -3) == outcome(function, of(*each) * -3), each


@pytest.mark.parametrize("name", ["elementwise", "reductions", "views", "attention", "embedding", "norms", "noise"])
def test_one_program_has_many_sizes(name: str) -> None:
    compiled = Compiled(FUNCTIONS[name], dynamic=True)
    for _ in range(3):
        for length in range(2, 22):
            compiled(of(3, length))
    assert len(compiled.programs) == 1
    assert not compiled.reasons


@pytest.mark.parametrize("name", ["elementwise", "reductions", "views", "attention", "embedding", "norms", "noise"])
def test_the_second_size_makes_the_program_for_all(name: str) -> None:
    compiled = Compiled(FUNCTIONS[name])
    for _ in range(3):
        for length in range(2, 22):
            assert outcome(compiled, of(3, length)) == outcome(FUNCTIONS[name], of(3, length)), length
    assert len(compiled.programs) == 2
    assert not compiled.reasons


def test_what_differs_in_more_than_sizes_has_programs_of_its_own() -> None:
    compiled = Compiled(lambda x, scale: x * scale)
    for scale in (2.0, 3.0, 4.0):
        for _ in range(4):
            compiled(of(3, 4), scale)
    assert len(compiled.programs) == 3
    assert not compiled._families
    for length in range(2, 9):
        compiled(of(3, length), 3.0)
    assert len(compiled.programs) == 4


def test_sizes_that_never_come_again_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    plain = Compiled._recorded

    def counted(self: Any, *args: Any) -> Any:
        recorded.append(1)
        return plain(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", counted)
    compiled = Compiled(lambda rows, x: torch.cat([rows, x]))
    rows = expected = of(1, 4)
    for _ in range(20):
        rows, expected = compiled(rows, of(1, 4)), torch.cat([expected, of(1, 4)])
        assert seen(rows) == seen(expected)
    assert len(compiled.programs) == 2
    assert len(recorded) == 2
    counts: list[int] = []
    assert "18 sizes without a row" in explanation_of(compiled)
    for _ in range(10):  # the same sizes again: what grows has a row when it has come often
        rows = of(1, 4)
        for _ in range(20):
            rows = compiled(rows, of(1, 4))
        counts.append(len(recorded))
        assert seen(rows) == seen(expected[:21])
    assert counts[-1] == 2  # later ones are compared with the recorded call
    assert len(compiled._families[0].table) == 19
    assert len(compiled.programs) == 2
    assert "without a row" not in explanation_of(compiled)


def test_what_has_come_often_has_a_row_though_there_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Compiled(lambda rows, x: torch.cat([rows, x]))
    waiting: list[int] = []
    for turn in range(20):
        if turn == 1:  # there is a program for all sizes, and no length has come for the fourth time
            monkeypatch.setattr(Effort, "has_time", lambda self: False)
        rows = of(1, 4)
        for _ in range(8):
            rows = compiled(rows, of(1, 4))
        assert seen(rows) == seen(torch.cat([of(1, 4)] * 9))
        waiting.append(compiled.sizes_waiting)
    assert waiting[8] == 6
    assert waiting[-1] == 0


def test_what_grows_has_rows_on_both_sides_of_a_size_from_which_other_kernels_run() -> None:
    """From 4,096 elements on another function may compute an op: one program has rows for less, for more, and where the
    result alone has so many.
    """
    compiled = Compiled(lambda rows, x: torch.cat([rows, x]) * 2 - 1)
    reasons: list[str] = []
    for _ in range(12):
        rows = expected = of(8, 256)
        for _ in range(16):  # the eighth is the first with so many elements
            rows, expected = compiled(rows[:, :256], of(1, 256)), torch.cat([expected, of(1, 256)]) * 2 - 1
            assert seen(rows) == seen(expected)
        reasons.append(explanation_of(compiled))
    assert "without a row" in reasons[0]
    assert "without a row" not in reasons[-1]
    assert sum(len(each.table) for each in compiled._families) == 15
    assert len(compiled._families) == 1
    assert not compiled.sizes_waiting


class Window:
    """A layer of a cache that keeps the last rows, and counts all that it has seen."""

    def __init__(self, kept: int) -> None:
        self.kept, self.seen = kept, 0
        self.rows: Any = None

    def update(self, rows: Any) -> Any:
        if self.rows is None:
            self.rows = rows[:0]
        self.seen += rows.shape[0]
        whole = torch.cat([self.rows, rows])
        self.rows = whole[-self.kept :]
        return whole, self.seen if self.seen < self.kept else self.kept - self.seen


class Counter:
    """Something that counts, and holds no tensor."""

    def __init__(self) -> None:
        self.seen = 0


def test_windows_that_count_what_they_have_seen_have_rows() -> None:
    """A new window comes with each generation: its counts are those of the generation before, as its shapes are."""

    def f(x: Any, window: Window) -> Any:
        whole, number = window.update(x)
        return (whole * 2).sum(0) + number

    compiled = Compiled(f)
    compiled._is_compared = False
    for _ in range(12):
        window, expected = Window(5), Window(5)
        for turn in range(9):
            x = of(1, 3) + turn
            assert seen(compiled(x, window)) == seen(f(x, expected))
            assert (window.seen, seen(window.rows)) == (expected.seen, seen(expected.rows))
    assert not compiled.reasons
    hits = compiled._hits
    window = Window(5)
    for turn in range(9):
        compiled(of(1, 3) + turn, window)
    assert compiled._hits - hits == 9


def test_counters_without_tensors_are_still_left_out() -> None:
    def f(x: Any, counter: Counter) -> Any:
        counter.seen += 1
        return x * 2 + 1

    compiled, counter = Compiled(f), Counter()
    for turn in range(1, 12):
        assert seen(compiled(of(2, 3), counter)) == seen(of(2, 3) * 2 + 1)
        assert counter.seen == turn
    assert "'seen' gets another value" in compiled.reasons[0]
    assert compiled.parts is not None


def test_sizes_that_come_in_any_order_have_a_row_when_they_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    plain = Compiled._recorded

    def counted(self: Any, *args: Any) -> Any:
        recorded.append(1)
        return plain(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", counted)
    compiled = Compiled(lambda x: x * 2 + 1)
    counts: list[int] = []
    for _ in range(12):
        for length in (4, 5, 3, 7, 6, 9, 8, 2):
            assert seen(compiled(of(1, length))) == seen(of(1, length) * 2 + 1)
        counts.append(len(recorded))
    assert (counts[0], counts[1], counts[-1]) == (2, 2, 2)
    assert len(compiled.programs) == 2
    assert not compiled.sizes_waiting


def test_what_grows_runs_as_if_it_were_not_compiled() -> None:
    told: list[bool] = []

    @torch.compiler.allow_in_graph
    def tell() -> None:
        told.append(torch.compiler.is_compiling())

    def f(rows: Any, x: Any) -> Any:
        tell()
        return torch.cat([rows, x])

    compiled = Compiled(f)
    rows = expected = of(1, 4)
    for _ in range(12):
        rows, expected = compiled(rows, of(1, 4)), torch.cat([expected, of(1, 4)])
        assert seen(rows) == seen(expected)
    assert compiled._families[0].grows
    assert told[:4] == [True] * 4
    assert told[-6:] == [False] * 6


def test_dynamic_sizes_have_a_row_when_they_first_come(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    plain = Compiled._recorded

    def counted(self: Any, *args: Any) -> Any:
        recorded.append(1)
        return plain(self, *args)

    monkeypatch.setattr(Compiled, "_recorded", counted)
    compiled = Compiled(lambda x: x * 2 + 1, dynamic=True)
    for length in range(1, 31):
        assert seen(compiled(of(1, length))) == seen(of(1, length) * 2 + 1)
    assert len(recorded) == 1
    assert len(compiled.programs) == 1
    assert len(compiled._families[0].table) == 30


def test_static_sizes_have_programs_of_their_own() -> None:
    static = Compiled(FUNCTIONS["elementwise"], dynamic=False)
    for length in range(2, 40):
        static(of(3, length))
    assert len(static.programs) == 8


def test_training_with_batches_of_all_sizes() -> None:
    def trained(compile: Callable[[Any], Any]) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        def step(x: Any) -> float:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        run = compile(step)
        return [run(of(2 + turn % 9, 3)) for turn in range(40)], seen(list(model.parameters()))

    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function, dynamic=True))
        return made[0]

    assert trained(compile) == trained(lambda each: each)
    assert len(made[0].programs) == 1


def test_what_else_changes_is_seen() -> None:
    scale = [2.0]
    compiled = Compiled(lambda x, n: x * scale[0] + n, dynamic=True)
    for turn in range(30):
        x = of(2, 2 + turn % 4)
        assert seen(compiled(x, turn % 3)) == seen(x * scale[0] + turn % 3)
        if turn % 10 == 9:
            scale[0] += 1
    assert len(compiled.programs) == 3
    assert seen(compiled(of(2, 3).double(), 1)) == seen(of(2, 3).double() * scale[0] + 1)
    assert seen(compiled(of(2, 3), True)) == seen(of(2, 3) * scale[0] + True)
    assert seen(compiled(of(3, 2).t(), 1)) == seen(of(3, 2).t() * scale[0] + 1)


def test_large_gradients_of_several_lengths() -> None:
    """Queries, keys and values from one product: their gradients are joined in memory that depends on the length."""
    torch.manual_seed(0)
    layer = nn.Linear(64, 192)

    def f(x: Any) -> Any:
        batch, length, _ = x.shape
        query, key, value = layer(x).view(batch, length, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        return query * key + value

    compiled = Compiled(f, dynamic=True)
    for length in (600, 600, 700, 700, 650, 650, 700):
        x = torch.randn(8, length, 64)
        gradients: list[Any] = []
        for each in (f, compiled):
            layer.zero_grad()
            each(x).sum().backward()
            gradients.append(seen(layer.weight.grad))
        assert gradients[0] == gradients[1], length
    assert len(compiled.programs) == 1


class Model(nn.Module):
    """Reads other attributes where its input is long."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.far, self.near = 3.0, 2.0
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Sigmoid()])

    def forward(self, x: Any) -> Any:
        factor = self.near
        if x.shape[0] > 6:
            factor = self.far
        return self.layer(x) * factor


class OnOneLine(Model):
    def forward(self, x: Any) -> Any:
        return self.layer(x) * (self.far if x.shape[0] > 6 else self.near)


class ByPosition(Model):
    def forward(self, x: Any) -> Any:
        return self.layers[x.shape[0] // 6](self.layer(x))


class Printing(Model):
    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        _ = x.shape[0] > 6 and print("long")
        return y * self.near


class Calling(Model):
    def forward(self, x: Any) -> Any:
        return self.layer(x) * (self.read() if x.shape[0] > 6 else 2.0)

    def read(self) -> float:
        return self.far


@pytest.mark.parametrize("kind", [Model, OnOneLine, ByPosition, Printing, Calling])
@pytest.mark.parametrize("dynamic", [None, True])
def test_what_only_some_sizes_read_is_guarded(kind: Any, dynamic: bool | None, capsys: Any) -> None:
    torch.manual_seed(0)
    model = kind().eval()
    compiled = Compiled(model, dynamic=dynamic)
    with torch.no_grad():
        for turn in range(8):
            for length in (3, 4, 5, 7, 8, 9, 12, 13):
                x = of(length, 4)
                expected = model(x)
                printed = capsys.readouterr().out
                assert seen(compiled(x)) == seen(expected), (turn, length)
                assert capsys.readouterr().out == printed
            if turn in (3, 5):
                model.far += 1
                model.layers[2] = nn.ReLU() if turn == 3 else nn.Sigmoid()


def overlapping(x: Any) -> Any:
    """A view of its own where a dimension has one element, a copy otherwise; it is changed in place."""
    y = x * 2
    flat = y.t().reshape(-1)
    flat += 1
    return y, flat


def windows(x: Any) -> Any:
    """Two windows that overlap only where there are few rows."""
    y = torch.cat([x, x])
    first, second = y[:3], y[len(y) - 3 :]
    first *= 2
    return second + 1


def changed(x: Any) -> Any:
    x += len(x)
    return x.sum(0), {"rows": len(x), "size": x.shape}


@pytest.mark.parametrize("function", [overlapping, windows, changed])
def test_arrays_that_share_memory_for_some_sizes(function: Any) -> None:
    compiled = Compiled(function, dynamic=True)
    for _ in range(4):
        for rows in (2, 4, 1, 3, 5, 6, 7):
            for columns in (3, 1, 2):
                one, other = of(rows, columns), of(rows, columns)
                assert seen(compiled(one)) == seen(function(other)), (rows, columns)
                assert seen(one) == seen(other)
                assert one._version == other._version


class Cache:
    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.length = 0


def test_a_cache_that_grows_is_followed() -> None:
    def step(cache: Cache, x: Any) -> Any:
        cache.rows[0] = torch.cat([cache.rows[0], x])
        return cache.rows[0].softmax(0).sum(1), cache.rows[0].shape[0]

    compiled = Compiled(step, dynamic=True)
    for _ in range(6):
        one, other = Cache(), Cache()
        one.rows, other.rows = [of(1, 4)], [of(1, 4)]
        for _ in range(12):
            assert seen(compiled(one, of(1, 4))) == seen(step(other, of(1, 4)))
            assert seen(one.rows) == seen(other.rows)
    assert len(compiled.programs) == 1
    assert compiled._hits >= 50


@pytest.mark.parametrize("dynamic", [None, True])
def test_numbers_that_were_equal_for_some_sizes(dynamic: bool | None) -> None:
    """Where the size is two, both products are the same op on the same tensor; it is not for other sizes."""

    def f(x: Any) -> Any:
        y = x * 2
        return y - x * x.shape[0], y.reshape(x.shape[0], 3).sum(1)

    compiled = torch.compile(f, dynamic=dynamic)
    for turn in range(16):
        x = torch.randn(1 + (turn + bool(dynamic)) % 4, 3)  # the program for all sizes is recorded with two
        for one, other in zip(compiled(x), f(x), strict=True):
            assert one.tolist() == other.tolist()


HEAD = torch.linspace(-1, 1, 16).reshape(4, 4)


def decoded(rows: Any, x: Any) -> Any:
    """One row of attention over all rows: what it begins and ends with has one size."""
    query = torch.cat([-x[:, 2:], x[:, :2]], 1) @ HEAD + 1
    rows = torch.cat([rows, (x @ HEAD).tanh()])
    found = (query @ rows.t()).softmax(1) @ rows
    return rows, (found @ HEAD).relu() * 2 + x


def at_least(rows: Any, x: Any) -> Any:
    """Up to eight rows, the second half has one size, too."""
    rows = torch.cat([rows, x])
    wide = torch.ones(max(rows.shape[0], 8), 4) * x
    return rows, (wide * 2 + 1).cos().sum() + rows.sum(), (x @ HEAD + 1).cos() * 2


@pytest.mark.parametrize("function", [decoded, at_least])
def test_what_has_one_size_beside_something_that_grows_is_planned(function: Any) -> None:
    compiled = Compiled(function)
    compiled._is_compared = False
    planned: list[int] = []
    for length in [6] * 7 + [14] * 9:
        rows = expected = of(2, 4)
        for number in range(length):
            x = of(1, 4) * number
            rows, *found = compiled(rows, x)
            expected, *wanted = function(expected, x)
            assert seen((rows, found)) == seen((expected, wanted))
        kept = [each.parts.kept for each in compiled._families if each.parts is not None]
        planned.append(sum([len(each) for each in kept if each is not None]))
    assert planned[0] == 0 < planned[6]
    assert (planned[-1] > planned[6]) == (function is at_least)
    assert all(each.program in compiled._programs for each in compiled._families)
    assert any("if not k" in each.program.source for each in compiled._families)
    assert explanation_of(compiled).startswith("2 programs")


def test_a_plan_that_does_not_hold_leaves_the_rows_as_they_were() -> None:
    compiled = Compiled(at_least)
    compiled._is_compared = False
    for length in [5] * 8:
        rows = of(2, 4)
        for _ in range(length):
            rows, *_ = compiled(rows, of(1, 4))
    family = next(each for each in compiled._families if each.parts is not None)
    assert family.parts.kept is not None
    taken = dict(family.table)
    family._unplan()
    assert all(len(row) == len(family._first) for row in family.table.values())
    assert family.program is family._unplanned
    family._plan()
    assert dict(family.table) == taken


def test_small_arrays_and_large_ones_are_one_program() -> None:
    """Elementwise ops choose their bodies by how many elements there are, in a program as anywhere else."""
    features, head = torch.linspace(-1, 1, 16), nn.Linear(16, 16)

    def function(x: Any) -> Any:
        y = torch.tanh(head(x)) * features + x.exp().sigmoid() / 3
        mask = (x.sum(1) > 0)[None].expand(len(x), len(x))
        pairs = (y.sum(1)[:, None] * y.sum(1)[None]).erf()
        return torch.where(mask, pairs, 0.5) @ y, F.gelu(y) ** 2

    compiled = Compiled(function)
    compiled._is_compared = False
    with torch.no_grad():
        for length in [8, 40, 70, 12, 300, 64, 20, 500, 256]:  # squares and sixteen times of them lie around 4,096
            for _ in range(4):
                x = torch.randn(length, 16)
                assert seen(compiled(x)) == seen(function(x))
    assert explanation_of(compiled).startswith("2 programs, no call that could not be compiled")
