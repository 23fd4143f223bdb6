"""Programs for compiled functions that look at elements: in Python, in the library, for a shape, or only to refuse."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_never_stale import seen

F = nn.functional
W = torch.linspace(-1, 1, 15).reshape(5, 3)
ROWS = torch.tensor([0, 1, 2])
HALF = torch.tensor([0.5, 0.25])


def number(value: Any) -> Any:
    return torch.tensor(value)


def assigned(position: Any) -> Any:
    result = W.clone()
    result[position] = 1
    return result


def gradient_of_some(x: Any) -> Any:
    leaf = x.clone().requires_grad_()
    leaf[leaf > 1].mean().backward()
    return leaf.grad


def counted(x: Any) -> Any:
    chosen = x.masked_select(x > 1)
    return chosen.sum() * chosen.shape[0]


def changed_before_it_is_read(x: Any) -> Any:
    x.add_(1)
    return x * 2 if x.sum() > 5 else x - 1


def drawn_before_it_is_read(x: Any) -> Any:
    noise = torch.rand(2)
    return noise if x.sum() > 5 else noise + 1


def alias_changed_before_it_is_read(x: Any) -> Any:
    y = x.clone()
    y[0] = 7
    view = y[:1]
    view.add_(1)
    return y * 2 if y.sum() > 10 else y - 1


def read_in_a_loop(x: Any) -> Any:
    while x.sum() < 10:
        x = x * 2
    return x


def seeded(x: Any) -> Any:
    torch.manual_seed(3)
    return torch.rand(2) + x


def seed_kept(x: Any) -> Any:
    state = torch.get_rng_state()
    first = torch.rand(2)
    torch.set_rng_state(state)
    return first + torch.rand(2) + x


def state_read(x: Any) -> Any:
    return x + torch.get_rng_state()[8:16].sum() + torch.initial_seed() + torch.rand(())


READS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "a loop": (read_in_a_loop, torch.tensor([1.0]), torch.tensor([2.0])),
    "a change before": (changed_before_it_is_read, torch.tensor([1.0]), torch.tensor([9.0])),
    "a draw before": (drawn_before_it_is_read, torch.tensor([1.0]), torch.tensor([9.0])),
    "a change of its own before": (alias_changed_before_it_is_read, torch.tensor([1.0, 1.0]), torch.tensor([1.0, 9.0])),
    "a number in an op": (lambda x: W.add(1, alpha=x.item()), number(1.0), number(2.0)),
    "minus zero": (lambda x: W * math.copysign(1, x.item()), number(0.0), number(-0.0)),
    "a length": (lambda n: W[:n].sum(), number(1), number(2)),
    "a size": (lambda n: torch.arange(n), number(3), number(4)),
    "an upper end": (lambda x: torch.linspace(0, x, 3), number(0.5), number(0.2)),
    "a filling": (lambda x: torch.full((2,), x), number(1.0), number(2.0)),
    "equal": (lambda x: W * 2 if torch.equal(x, ROWS) else W, ROWS, ROWS + 1),
    "close": (lambda x: W * 2 if torch.allclose(x, ROWS) else W, ROWS, ROWS + 1),
    "contains": (lambda x: W * 2 if 2 in x else W, ROWS, ROWS + 3),
    "sorted": (lambda x: torch.stack(sorted(x)), torch.tensor([1, 2]), torch.tensor([3, 2])),
    "as text": (lambda x: W * len(f"{x.item()}"), number(1), number(1000)),
    "as a list": (lambda x: x.tolist(), number(1.0), number(2.0)),
    "two numbers": (lambda x: (x.item(), (x * 2).item()), number(1.0), number(2.0)),
    "a root": (lambda x: math.sqrt(x), number(4.0), number(9.0)),
    "rounded down": (lambda x: math.floor(x), number(4.2), number(-9.2)),
    "towards zero": (lambda x: int(x), number(4.2), number(-9.2)),
    "a truth that is asked for": (lambda x: math.isfinite(x), number(True), number(False)),
}
"""Functions whose Python looks at elements, an input, and another on which they do something else."""

BESIDE: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "a copy made of data": (lambda x: torch.tensor(x) * 2, number(1.0), number(2.0)),
    "data in a list": (lambda x: torch.tensor([x, 1.0]), number(1.0), number(2.0)),
    "data in a list again": (lambda x: torch.as_tensor([x, x]), number(1.0), number(2.0)),
    "an array of NumPy": (lambda x: torch.from_numpy(x.numpy() * 2), HALF, HALF * 2),
    "how it prints": (lambda x: W * len(repr(x)), number(1), number(100000)),
    "a position": (lambda i: W[i] * 2, number(0), number(2)),
    "a position to assign to": (assigned, number(0), number(2)),
    "positions to assign to": (assigned, ROWS, ROWS + 2),
    "a mask to assign to": (assigned, W[:, 0] > 0, W[:, 0] < 0),
    "classes": (lambda i: F.one_hot(i), ROWS, ROWS * 2),
    "parts": (lambda i: torch.tensor_split(W, i)[0] * 2, torch.tensor([1, 2]), torch.tensor([3, 4])),
    "lengths": (
        lambda n: nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), n).data,
        torch.tensor([3, 2]),
        torch.tensor([3, 1]),
    ),
    "a seed": (seeded, HALF, HALF * 2),
    "a state of the generator": (seed_kept, HALF, HALF * 2),
    "a look at the generator": (state_read, HALF, HALF * 2),
    "a sampled path": (
        lambda n: F.ctc_loss(torch.zeros(5, 2, 3), torch.tensor([[1, 2], [1, 2]]), torch.tensor([5, 5]), n),
        torch.tensor([1, 2]),
        torch.tensor([2, 1]),
    ),
}
"""Functions of the library that look at elements: what they find decides which ops run."""

SHAPES: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "a mask": (lambda m: W[m] * 2, W[:, 0] > 0, W[:, 0] < 9),
    "a mask and its gradient": (gradient_of_some, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 3.0])),
    "a count": (counted, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 3.0])),
    "those that are not zero": (lambda x: torch.nonzero(x) * 2, torch.tensor([1, 2]), torch.tensor([3, 0])),
    "different ones": (lambda x: torch.unique(x) * 2, torch.tensor([1, 2]), torch.tensor([3, 3])),
    "how often": (lambda x: torch.bincount(x) * 2, ROWS, ROWS * 2),
    "repetitions": (lambda x: torch.repeat_interleave(x), torch.tensor([1, 2]), torch.tensor([2, 3])),
    "positions": (lambda i: W[i] * 2, ROWS, ROWS + 1),
    "positions of a smaller type": (lambda i: W[i] * 2, ROWS.int(), ROWS.int() + 1),
    "a mask of bytes": (lambda m: W[m.bool()] * 2, (W[:, 0] > 0).byte(), (W[:, 0] < 9).byte()),
}
"""Functions whose shapes depend on elements."""

REFUSALS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "rows of a table": (lambda i: F.embedding(i, W), ROWS, ROWS + 5),
    "bags": (lambda i: F.embedding_bag(ROWS, W, i), torch.tensor([0, 1]), torch.tensor([1, 2])),
    "rows": (lambda i: W[i] * 2, ROWS, ROWS + 5),
    "probabilities": (lambda p: F.binary_cross_entropy(p, torch.ones(2)), HALF, HALF * 9),
    "variances": (lambda v: F.gaussian_nll_loss(torch.ones(2), torch.zeros(2), v), HALF, -HALF),
    "targets": (lambda i: F.cross_entropy(W[:3], i), ROWS, ROWS + 5),
    "margins": (lambda i: F.multi_margin_loss(W[:3], i), ROWS, ROWS + 5),
    "several margins": (lambda i: F.multilabel_margin_loss(W[0], i), torch.tensor([0, 1, -1]), ROWS + 5),
    "an inverse": (torch.linalg.inv, torch.eye(2), torch.zeros(2, 2)),
    "a factor": (torch.linalg.cholesky, torch.eye(2), -torch.eye(2)),
    "division": (lambda x: ROWS // x, ROWS + 1, ROWS),
}
"""Functions that refuse some elements."""

PROGRAMS = {**READS, **BESIDE, **SHAPES, **REFUSALS}


def outcome(function: Callable[[Any], Any], given: Any) -> Any:
    given = given.clone()
    try:
        return seen(function(given)), seen(given)
    except Exception as error:
        return type(error), str(error)[:40]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_elements_decide_is_never_stale(name: str) -> None:
    function, first, other = PROGRAMS[name]
    given = [first] * 5 + [other, first, other, other, other, first, other]
    torch.manual_seed(0)
    expected = [outcome(function, each) for each in given]
    assert expected[0] != expected[5]
    compiled = Compiled(function)
    torch.manual_seed(0)
    assert [outcome(compiled, each) for each in given] == expected


def test_gradients_of_results_without_dimensions() -> None:
    g = Compiled(lambda x: torch.logsumexp(x, 0))
    x = torch.tensor(1.0, requires_grad=True)
    for _ in range(5):
        g(x).backward()
    assert g.programs
    assert x.grad is not None
    assert x.grad.tolist() == 5


def test_a_gradient_that_is_an_array_of_the_forward_pass() -> None:
    rows = torch.tensor([[0, 1], [1, 0]])
    x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])

    def gradients(function: Any) -> Any:
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        function(a, b).sum().backward()
        return seen([a.grad, b.grad])

    def f(a: Any, b: Any) -> Any:
        return torch.scatter_reduce(a, 0, rows, b, "prod")

    g = Compiled(f)
    assert all(gradients(g) == gradients(f) for _ in range(5))
    assert g.programs


def test_an_array_that_an_op_gives_back_is_not_let_go() -> None:
    matrix = torch.tensor([[4.0, 1.0], [2.0, 3.0]])

    def gradients(function: Any) -> Any:
        a, b = matrix.clone().requires_grad_(), torch.eye(2).requires_grad_()
        function(a, b).sum().backward()
        return seen([a.grad, b.grad])

    def f(a: Any, b: Any) -> Any:
        factors, pivots = torch.linalg.lu_factor(a)
        return torch.linalg.lu_solve(factors, pivots, b)

    g = Compiled(f)
    assert all(gradients(g) == gradients(f) for _ in range(5))


def test_reads_are_checks() -> None:
    """A program for each outcome, as long as nothing has happened when Python looks."""
    g = Compiled(lambda x: x * 2 if x.sum() > 0 else x - 1)
    for _ in range(6):
        g(W), g(-W - 1)
    assert len(g.programs) == 2
    assert not g.reasons


def _with_layers_left_out(x: Any, share: float, generator: Any) -> Any:
    """Layers that are left out now and then, with other draws between the decisions."""
    for scale in (1.5, -0.5, 2.0):
        x = F.dropout(x, 0.3)
        if torch.rand(()) < share or torch.rand(1, generator=generator) < share:
            continue
        x = (x * scale).tanh()
    return x


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_what_draws_decide_is_a_check(share: float) -> None:
    """Where another number is drawn than before, every number is drawn again, and by the same ops."""

    def run(compile: Any) -> list[Any]:
        torch.manual_seed(1)
        own = torch.Generator().manual_seed(2)
        weight = W.clone().requires_grad_()
        optimizer = torch.optim.SGD([weight], 0.1)

        def step() -> Any:
            optimizer.zero_grad()
            loss = _with_layers_left_out(weight, share, own).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        made = compile(step)
        found = [seen([made(), weight]) for _ in range(24)]
        if made is not step and not share:
            assert len(made.programs) == 1
            assert not made.reasons
        return [*found, torch.rand(2).tolist(), torch.rand(2, generator=own).tolist()]

    assert run(Compiled) == run(lambda step: step)


def test_classes_are_checked_by_an_op() -> None:
    g = Compiled(lambda i: F.one_hot(i, 4) * 2)
    for _ in range(5):
        assert seen(g(ROWS)) == seen(F.one_hot(ROWS, 4) * 2)
    assert g.programs
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        g(ROWS + 2)
    with pytest.raises(RuntimeError, match="Class values must be non-negative"):
        g(ROWS - 1)


def test_read_only_views_of_dictionaries_are_looked_into() -> None:
    table: dict[str, Any] = {"factor": 2.0, "bias": torch.ones(3)}
    view = types.MappingProxyType(table)
    compiled = Compiled(lambda x: x * view["factor"] + view["bias"])
    x = torch.arange(3.0)
    for turn in range(9):
        if turn == 4:
            table["factor"] = 3.0
        if turn == 7:
            table["bias"] = torch.zeros(3)
        assert torch.equal(compiled(x), x * table["factor"] + table["bias"])
    assert len(compiled.programs) == 2
    assert not compiled.reasons


class Options:
    def __init__(self) -> None:
        self._hidden = False

    @property
    def output_hidden(self) -> bool:
        return self._hidden


def test_a_property_under_a_name_that_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options()

    def function(x: Any) -> Any:
        wanted = {each: getattr(options, f"output_{each}", False) for each in ("hidden", "others")}
        return (x * 2, x) if wanted["hidden"] else x * 2

    compiled = Compiled(function)
    for _ in range(4):
        assert seen(compiled(W)) == seen(function(W))
    assert compiled.programs, compiled.reasons
    options._hidden = True
    assert seen(compiled(W)) == seen(function(W))
    monkeypatch.setattr(Options, "output_hidden", property(lambda self: not self._hidden))
    assert seen(compiled(W)) == seen(function(W))


def test_operators_of_one_namespace_are_one_object() -> None:
    assert torch.ops.not_there_yet is torch.ops.not_there_yet


def test_attributes_that_are_others_are_checks() -> None:
    """`LogNormal.loc` is `base_dist.loc`: a program holds for the base that it has seen."""
    distributions = torch.distributions
    given = distributions.LogNormal(torch.zeros(3), torch.ones(3))

    def shifted(x: Any) -> Any:
        return x + given.loc

    run = torch.compile(shifted)
    x = torch.ones(3)
    for centre in (0.0, 5.0):
        given.base_dist = distributions.Normal(torch.full((3,), centre), torch.ones(3))
        for _ in range(3):
            assert run(x).tolist() == [1 + centre] * 3
    assert str(torch.compiler.explain(run)).startswith("2 programs, no call that could not be compiled")
