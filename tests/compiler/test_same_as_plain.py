"""Compiled calls do what plain ones do: steps in any order, changed inputs, hooks, several uses of one tensor."""

from __future__ import annotations

import copy
import logging
import pickle
import time
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn

from .orders import Program, difference

SEEDS = [7, 11, 19, 42, 58, 77]


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_in_any_order_of_their_statements(seed: int) -> None:
    assert difference(seed) is None


def test_the_orders_are_many() -> None:
    sources = [Program(seed).source for seed in range(100)]
    assert len(set(sources)) > 80
    assert sum(source.splitlines()[-2].strip().endswith("zero_grad()") for source in sources) > 3


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_step_that_ends_with_zero_grad_is_prepared(name: str) -> None:
    torch.manual_seed(0)
    model, twin = nn.Linear(3, 2), nn.Linear(3, 2)
    twin.load_state_dict(model.state_dict())
    x = torch.ones(4, 3)
    made: list[Any] = []
    for each in (model, twin):
        opt = getattr(torch.optim, name)(each.parameters(), lr=0.1)
        made.append(opt)

        def step(x: Any, each: Any = each, opt: Any = opt) -> Any:
            loss = each(x).pow(2).mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
            return loss

        run = torch.compile(step) if each is model else step
        for _ in range(8):
            run(x)
        if each is model:
            assert torch.compiler.explain(run).startswith("1 program, no call")
    assert torch.equal(model.weight, twin.weight)
    assert all(each.grad is None for each in model.parameters())
    assert str(made[0].state_dict()) == str(made[1].state_dict())


def _trained(model: Any, run: Any, inputs: Any) -> list[Any]:
    found: list[Any] = []
    for x in inputs:
        model.zero_grad()
        result = run(x)
        result.sum().backward()
        found.append([result.tolist(), x.tolist(), None if x.grad is None else x.grad.tolist()])
        found.append([None if each.grad is None else each.grad.tolist() for each in model.parameters()])
    return found


@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_input_that_is_changed_in_place(requires_grad: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2))
    given = torch.randn(6, 4, 3)

    def run(call: Any) -> list[Any]:
        inputs = [each.clone() for each in given]
        leaves = [each.requires_grad_() for each in inputs] if requires_grad else inputs
        return _trained(model, (lambda x: call(x * 1)) if requires_grad else call, leaves)

    compiled = torch.compile(model)
    assert run(compiled) == run(model)
    assert torch.compiler.explain(compiled).programs or requires_grad


HOOKS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)


@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize("where", ["root", "child", "compiled"])
def test_hooks_run_once_for_each_call(kind: str, where: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    compiled = torch.compile(model)
    ran: list[str] = []

    def calls(count: int) -> int:
        ran.clear()
        for _ in range(count):
            compiled(torch.ones(4, 3, requires_grad=True)).sum().backward()
        return len(ran)

    calls(5)
    target = {"root": model, "child": model[0], "compiled": compiled}[where]
    handle = getattr(target, kind)(lambda *_: ran.append(kind))
    assert calls(7) == 7
    handle.remove()
    assert calls(5) == 0


def test_hooks_of_tensors_run_once_for_each_backward() -> None:
    ran: list[int] = []

    @torch.compile
    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda grad: ran.append(1))
        return y.exp()

    for _ in range(7):
        f(torch.ones(3, requires_grad=True)).sum().backward()
    assert len(ran) == 7


def _data(torch: Any, x: Any) -> Any:
    y = x * 2
    y.data.mul_(2)
    return y * y


def _own_data(torch: Any, x: Any) -> Any:
    y = torch.sin(x)
    y.data.add_(1)
    return y


def _data_of_the_input(torch: Any, x: Any) -> Any:
    x.data.mul_(2)
    return (x * x).sum()


@pytest.mark.parametrize("function", [_data, _own_data, _data_of_the_input])
def test_changes_of_data(function: Any) -> None:
    compiled = torch.compile(lambda x: function(torch, x))
    for turn in range(7):
        one, other = (torch.linspace(0, 1, 4).add(turn).requires_grad_() for _ in range(2))
        mine, its = function(torch, one), compiled(other)
        mine.sum().backward()
        its.sum().backward()
        assert mine.tolist() == its.tolist()
        assert one.tolist() == other.tolist()
        assert one.grad is not None
        assert other.grad is not None
        assert one.grad.tolist() == other.grad.tolist()


@pytest.mark.parametrize("uses", [1, 2, 3])
def test_gradients_of_several_uses_are_added_in_the_plain_order(uses: int) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(8, 8)

    def block(x: Any) -> Any:
        return sum([x, torch.tanh(x), x.sigmoid()][:uses], layer(x))

    compiled = torch.compile(block)
    for _ in range(8):
        leaf = torch.randn(5, 8, requires_grad=True)
        found = []
        for call in (block, compiled):
            leaf.grad = layer.weight.grad = None
            x = leaf * 1.7
            (x + call(x) + x.cos() + layer.weight.sum()).pow(2).sum().backward()
            assert leaf.grad is not None
            assert layer.weight.grad is not None
            found.append((leaf.grad.tolist(), layer.weight.grad.tolist()))
        assert found[0] == found[1]
    assert torch.compiler.explain(compiled).is_whole


OFFSETS = {
    "read": lambda x: x + x.storage_offset(),
    "of a view": lambda x: x[2:] + x[2:].storage_offset(),
    "of its own": lambda x: (x * 2)[3:] + (x * 2)[3:].storage_offset(),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2)).clone(),
    "diagonal": lambda x: x.clone().view(3, 3).fill_diagonal_(5.0),
}


@pytest.mark.parametrize("name", sorted(OFFSETS))
def test_offsets_in_the_storage_are_looked_at(name: str) -> None:
    function: Any = OFFSETS[name]
    compiled = torch.compile(function)
    for turn in range(10):
        x = torch.arange(40.0)[turn % 3 : turn % 3 + 9]
        assert compiled(x).tolist() == function(x).tolist()


def test_a_copy_of_a_compiled_module_is_compiled_by_itself() -> None:
    torch.manual_seed(0)
    compiled = torch.compile(nn.Linear(2, 2))
    x = torch.ones(2)
    for _ in range(5):
        before = compiled(x).tolist()
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        with torch.no_grad():
            other.weight.fill_(3.0)
            other.bias.zero_()
        assert [other(x).tolist() for _ in range(5)] == [[6.0, 6.0]] * 5
        assert torch.compiler.explain(other).startswith("1 program")
    assert compiled(x).tolist() == before


def test_names_of_a_compiled_module_are_the_modules() -> None:
    class Scaled(nn.Module):
        kind = 7

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.scale = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.scale + getattr(self, "extra", 0)

        def __len__(self) -> int:
            return 5

    model = Scaled()
    compiled = torch.compile(model, backend="eager")
    x = torch.ones(2)
    seen: list[Any] = []

    def note(*values: Any) -> None:
        seen.append([each.tolist() if isinstance(each, torch.Tensor) else each for each in values])

    compiled.fresh = 1
    note(model.fresh, compiled.fresh, "fresh" in vars(compiled), "fresh" in dir(compiled))
    del compiled.fresh
    note(hasattr(model, "fresh"), hasattr(compiled, "fresh"))
    with pytest.raises(AttributeError):
        del compiled.fresh
    compiled.kind = 8
    note(model.kind, type(model).kind)
    note(*[compiled(x) for _ in range(5)])
    compiled.scale = 3.0
    note(compiled(x), model(x))
    compiled.extra = 4.0
    note(compiled(x), model(x))
    del compiled.extra
    note(compiled(x), model(x))
    compiled.weight = nn.Parameter(torch.ones(1))
    note([name for name, _ in model.named_parameters()], list(compiled.state_dict()))
    del compiled.weight
    note([name for name, _ in compiled.named_parameters()])
    compiled.more = nn.ReLU()
    note([name for name, _ in model.named_modules()])
    note(str(compiled.load_state_dict(compiled.state_dict())))
    note(isinstance(compiled, nn.Module), type(compiled).__name__, len(compiled))
    note(compiled.eval().training, model.training, model.train().training, compiled.training)
    compiled.training = False
    note(model.training)
    compiled.forward = lambda x: x * 100
    note(compiled(x), model(x))
    note("training" in vars(compiled), compiled._orig_mod is model)
    names = ["_orig_mod.weight", "_orig_mod.layer.weight", "_orig_mod.layer.bias"]
    assert (
        seen
        == [  # as PyTorch 2.13 has it
            [1, 1, False, True],
            [False, False],
            [8, 7],
            [[2.0, 2.0]] * 5,
            [[3.0, 3.0]] * 2,
            [[7.0, 7.0]] * 2,
            [[3.0, 3.0]] * 2,
            [["weight", "layer.weight", "layer.bias"], names],
            [names[1:]],
            [["", "layer", "more"]],
            ["<All keys matched successfully>"],
            [True, "OptimizedModule", 5],
            [False, False, True, True],
            [False],
            [[100.0, 100.0], [3.0, 3.0]],
            [False, True],
        ]
    )


BACKENDS: list[Any] = ["inductor", "eager", "verify", lambda graph, examples: graph.forward]


@pytest.mark.parametrize("backend", BACKENDS, ids=["inductor", "eager", "verify", "own"])
def test_full_graphs_refuse_branches_on_data(backend: Any) -> None:
    @torch.compile(fullgraph=True, backend=backend)
    def branches(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x * 3

    @torch.compile(fullgraph=True, backend=backend)
    def prints(x: Any) -> Any:
        print()
        return x * 2

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"(?s)test_same_as_plain.py:\d+\).*in .*branches"):
        branches(torch.ones(2))
    for _ in range(6):
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"(?s)print\(\) is called .*test_same_as_plain.py:\d+"):
            prints(torch.ones(2))
    good = torch.compile(lambda x: (x * 2).relu(), fullgraph=True, backend=backend)
    assert [good(torch.ones(2)).tolist() for _ in range(5)] == [[2.0, 2.0]] * 5
    assert isinstance(torch.compiler.explain(good), str)


def _prints(x: Any, y: Any) -> Any:
    try:
        print(x)
    except Exception:
        y.add_(100)
    return y


def _logs(x: Any, y: Any) -> Any:
    _LOG.warning("%s", x)
    return y


class _Kept(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _SEEN.append(record)


_LOG = logging.getLogger("nobody hears it")
_LOG.addHandler(_Kept())
_LOG.propagate = False


def _branches(x: Any, y: Any) -> Any:
    return y + 1 if x.sum() > 0 else y


def _asks_the_clock(x: Any, y: Any) -> Any:
    return y * time.time()


def _runs_what_is_disabled(x: Any, y: Any) -> Any:
    return _disabled(y)


@torch.compiler.disable
def _disabled(y: Any) -> Any:
    _SEEN.append("ran")
    return y


_SEEN: list[Any] = []
ENDS = [_prints, _logs, _branches, _asks_the_clock, _runs_what_is_disabled]


@pytest.mark.parametrize("ends", ENDS)
def test_a_call_that_full_graphs_refuse_leaves_nothing_behind(ends: Any, capsys: Any) -> None:
    """PyTorch raises before anything runs."""
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
    state: dict[str, Any] = {"calls": 0}
    history = [1]

    def step(x: Any) -> Any:
        state["calls"] += 1
        history.append(x)
        state["net"] = net
        y = net(x).relu_()
        x[1:].mul_(2)
        return ends(x, y) + torch.rand(3, 2)

    def everything() -> Any:
        return (
            [(name, each.tolist()) for name, each in net.state_dict().items()],
            torch.get_rng_state().tolist(),
            repr((state, history)),
            x.tolist(),
            x._version,
        )

    x = torch.arange(6.0).reshape(3, 2)
    compiled = torch.compile(step, fullgraph=True)
    before = everything()
    for _ in range(6):
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"test_same_as_plain.py:\d+"):
            compiled(x)
        assert everything() == before
    assert capsys.readouterr().out == ""
    assert not _SEEN


@pytest.mark.parametrize("ends", ENDS)
def test_a_call_that_full_graphs_refuse_later_leaves_nothing_behind(ends: Any, capsys: Any) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
    notes: dict[str, Any] = {}
    x, count = torch.ones(3, 2), torch.zeros(2)

    @torch.compile(fullgraph=True)
    def step(x: Any, does: bool) -> Any:
        y = net(x)
        count.add_(1)
        if does:
            notes["y"] = y
            y = ends(x, y)
        return y

    def everything() -> Any:
        tensors = [each.tolist() for each in (*net.state_dict().values(), torch.get_rng_state(), count)]
        return tensors, repr(notes), count._version

    for _ in range(4):
        step(x, False)
    before = everything()
    for _ in range(6):
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"test_same_as_plain.py:\d+"):
            step(x, True)
        assert everything() == before
    assert not _SEEN
    assert capsys.readouterr().out == ""
    step(x, False)
    assert count.tolist() == [5.0, 5.0]


def test_modules_compiled_in_their_place_are_explained() -> None:
    model = nn.Linear(2, 2)
    model.compile()
    for _ in range(5):
        model(torch.ones(2))
    assert torch.compiler.explain(model).startswith("1 program")


def test_products_of_expanded_matrices() -> None:
    def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return (left.t() @ right) * 1

    compiled = torch.compile(product)
    torch.manual_seed(0)
    for left in (torch.ones(()).expand(14, 5), torch.rand(28, 10)[::2, ::2]):
        for _ in range(12):
            right = torch.randn(14, 1)
            assert torch.equal(compiled(left, right), product(left, right))


@pytest.mark.parametrize(
    "change", ["y[:1] = 3.0", "y[None] = torch.tensor(2.0)", "y.view(2).mul_(3.0)", "y[1:].fill_(1.0)"]
)
def test_gradients_where_a_used_tensor_is_changed_later(change: str) -> None:
    """The gradient of the change is written into memory that a merged op had made."""
    lines = ["def function(x):", "y = x * 1.5", "z = y.sub(y)", change, "return z.sub(y)"]
    names: dict[str, Any] = {"torch": torch}
    exec("\n    ".join(lines), names)
    compiled = torch.compile(names["function"])
    for _ in range(5):
        x, like = (torch.tensor([0.84, -0.47], requires_grad=True) for _ in range(2))
        compiled(x).sum().backward()
        names["function"](like).sum().backward()
        assert torch.equal(x.grad, like.grad)


@pytest.mark.parametrize("again", ["detach()", "data", "detach().detach()"])
def test_gradients_of_what_was_changed_and_then_detached(again: str) -> None:
    """The op gives back the very array that it was given, after that array was replaced."""
    names: dict[str, Any] = {}
    lines = ["def function(x):", "y = x * 2", "y.sin_()", f"z = y.{again}", "y.pow(2).sum().backward()"]
    exec("\n    ".join(lines), names)
    compiled = torch.compile(names["function"])
    for turn in range(5):
        x, like = (torch.tensor([1.75, 0.5]).add_(turn).requires_grad_() for _ in range(2))
        compiled(x)
        names["function"](like)
        assert torch.equal(x.grad, like.grad)


@pytest.mark.parametrize("made", ["view(2)", "t()", "add(1)[0:1]"])
def test_a_view_that_becomes_a_leaf_inside_stays_one(made: str) -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(f"def function(x):\n    y = torch.zeros(2).{made}.requires_grad_()\n    return y, x * 2", names)
    compiled = torch.compile(names["function"])
    for _ in range(5):
        y, doubled = compiled(torch.ones(2, requires_grad=True))
        assert y.is_leaf
        assert y.requires_grad
        assert not doubled.is_leaf


def test_a_graph_without_leaves_is_differentiated_as_often_as_asked() -> None:
    """The derivative of `round` leads nowhere."""

    def function() -> torch.Tensor:
        y = torch.tensor([-1.74]).requires_grad_() * 1.5
        with torch.no_grad():
            view = y.reshape(-1)
        return view.round()

    compiled = torch.compile(function)
    for _ in range(5):
        result = compiled()
        result.sum().backward(retain_graph=True)
        result.sum().backward()


def test_gradients_of_gradients_are_added_in_one_order() -> None:
    """A layer's product stands for several ops; behind one of them the gradients of both passes meet."""
    table, layer = nn.Embedding(7, 1), nn.Linear(1, 3)

    def step(positions: Any) -> Any:
        out = layer(table(positions))
        loss = nn.functional.l1_loss(out, out.detach() + 1) + layer.weight.square().sum() * 0.01
        (penalty,) = torch.autograd.grad(loss, [table.weight], create_graph=True)
        (loss + penalty.square().sum()).backward()
        found, layer.weight.grad = layer.weight.grad, None
        return found

    compiled = torch.compile(step)
    for seed in range(20):
        torch.manual_seed(seed)
        for each in (table, layer):
            each.reset_parameters()
        positions = torch.randint(0, 7, (5, 4))
        assert torch.equal(compiled(positions), step(positions))


def test_results_lie_as_in_plain_calls_where_the_first_operand_is_broadcast() -> None:
    """Schedules behind an op that Python calls are planned for the layout that its result had when it was recorded."""

    def f(weights: Any, steps: Any) -> Any:
        return torch.exp(weights[None, :, None, :] * steps.transpose(1, 2)[..., None])

    weights, steps = torch.randn(128, 8), torch.randn(4, 32, 128)
    expected = f(weights, steps).stride()
    assert expected == (32768, 8, 1024, 1)
    compiled = torch.compile(f)
    for _ in range(4):
        assert f(weights, steps).stride() == expected
        assert compiled(weights, steps).stride() == expected
