"""Operators of the user's own in compiled calls: their Python runs in every call, and breaks nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.library import custom_op

CALLS = 6


def operator(function: Callable[..., Any], schema: str = "(Tensor x) -> Tensor", **options: Any) -> Any:
    """A function as an operator with a name that is new."""
    return custom_op(f"tests::n{uuid.uuid4().hex}", function, mutates_args=(), schema=schema, **options)


def report(compiled: Any) -> str:
    return str(torch.compiler.explain(compiled)).partition("\n")[0]


def by_groups(seen: list[int]) -> Any:
    """Products of some rows with a matrix each: Python looks at how many rows there are for each."""

    def run(x: Any, weight: Any, ends: Any) -> Any:
        made, start = torch.zeros(x.shape[0], weight.shape[2]), 0
        for number, end in enumerate(ends.tolist()):
            made[start:end] = x[start:end] @ weight[number]
            start = end
        seen.append(start)
        return made

    schema = "(Tensor x, Tensor weight, Tensor ends) -> Tensor"
    made = operator(run, schema)
    made.register_fake(lambda x, weight, ends: x.new_empty(x.shape[0], weight.shape[2]))

    def backwards(x: Any, weight: Any, ends: Any, grad: Any) -> Any:
        for_x, for_weight, start = torch.zeros_like(x), torch.zeros_like(weight), 0
        for number, end in enumerate(ends.tolist()):
            for_x[start:end] = grad[start:end] @ weight[number].T
            for_weight[number] = x[start:end].T @ grad[start:end]
            start = end
        return for_x, for_weight

    behind = operator(backwards, "(Tensor x, Tensor weight, Tensor ends, Tensor grad) -> (Tensor, Tensor)")
    behind.register_fake(lambda x, weight, ends, grad: (torch.empty_like(x), torch.empty_like(weight)))

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    made.register_autograd(lambda ctx, grad: (*behind(*ctx.saved_tensors, grad), None), setup_context=save)
    return made


class Experts(nn.Module):
    """Three experts, each for its own rows."""

    def __init__(self, product: Any) -> None:
        super().__init__()
        self.inner, self.product = nn.Linear(4, 5), product
        self.weight = nn.Parameter(torch.randn(3, 5, 6))

    def forward(self, x: Any, ends: Any) -> Any:
        return self.product(self.inner(x).relu(), self.weight, ends).tanh()


@pytest.mark.parametrize("options", [{}, {"dynamic": True}], ids=str)
def test_python_that_looks_at_elements_is_no_graph_break(options: dict[str, bool]) -> None:
    seen: list[int] = []
    model = Experts(by_groups(seen))
    compiled = torch.compile(model, **options)
    for number in range(CALLS):
        x, ends = torch.randn(9, 4), torch.tensor([number, number + 2, 9])
        gradients = []
        for call in (model, compiled):
            model.zero_grad()
            result = call(x, ends)
            result.square().sum().backward()
            gradients.append([result, *[each.grad for each in model.parameters()]])
        assert all(map(torch.equal, *gradients))
    assert len(seen) == 2 * CALLS
    assert report(compiled).startswith("1 program")


def test_sizes_may_change() -> None:
    model = Experts(by_groups([]))
    compiled = torch.compile(model)
    for number in range(12):
        rows = 6 + number % 2
        x, ends = torch.randn(rows, 4), torch.tensor([1, 2, rows])
        assert torch.equal(compiled(x, ends), model(x, ends))
    assert report(compiled).startswith("2 programs")


def test_what_it_finds_in_each_call_is_its_own() -> None:
    """Not even where a first call is watched, and what it finds in tensors is compared with what the next one finds."""
    product = by_groups([])

    def function(x: Any, weight: Any, ends: Any) -> Any:
        if x.ndim > 2:
            print("so that nobody can say before which code runs")
        for _ in range(5):
            x = product(x, weight, ends).tanh()
        return x

    compiled = torch.compile(function)
    for number in range(CALLS):
        x, weight, ends = torch.randn(6, 4), torch.randn(3, 4, 4), torch.tensor([1, 1 + number % 4, 6])
        assert torch.equal(compiled(x, weight, ends), function(x, weight, ends))
    assert report(compiled) == "1 program, no call that could not be compiled"


def test_what_it_prints_is_printed_in_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    def told(x: Any, scale: float) -> Any:
        print("told")
        return x * scale

    told_op = operator(told, "(Tensor x, *, float scale) -> Tensor")
    told_op.register_fake(lambda x, scale: torch.empty_like(x))
    compiled = torch.compile(lambda x: told_op(x + 1, scale=2.0) - 1, fullgraph=True)
    for number in range(CALLS):
        x = torch.randn(4)
        assert torch.equal(compiled(x), (x + 1) * 2 - 1)
        assert capsys.readouterr().out == "told\n", number


def test_autocast_inside_and_outside() -> None:
    product = operator(lambda x: x @ x)
    product.register_fake(torch.empty_like)

    @torch.compile
    def function(x: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return product(x + 1)

    for _ in range(CALLS):
        x = torch.randn(4, 4)
        expected = (x + 1) @ (x + 1)
        for enabled in (True, False):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                assert torch.equal(function(x), expected)


@pytest.mark.parametrize("fake", [None, lambda x: x.new_empty(3), lambda x: x.new_empty(x.sum().item())])
@pytest.mark.filterwarnings("ignore:torch.compile")
def test_shapes_that_depend_on_elements(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no function without data, it is wrong, which a warning may say, or it cannot say."""
    monkeypatch.delenv("FLAMBEAU_COMPILE_FAULTS", raising=False)
    positive = operator(lambda x: x[x > 0])
    if fake is not None:
        positive.register_fake(fake)

    compiled = torch.compile(lambda x: positive(x).exp() + 1)
    for _ in range(2 * CALLS):
        x = torch.randn(7)
        assert torch.equal(compiled(x), x[x > 0].exp() + 1)


def test_a_function_without_data_that_is_wrong_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLAMBEAU_COMPILE_FAULTS", raising=False)
    grows = operator(lambda x: torch.cat([x, x]) if x[0] > 0 else x.clone())
    grows.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: grows(x) * 2)
    for _ in range(CALLS):
        compiled(-torch.ones(3))
    with pytest.warns(UserWarning, match="register_fake"):
        assert torch.equal(compiled(torch.ones(3)), torch.full((6,), 2.0))


def test_errors_of_its_python_are_those_of_the_plain_call() -> None:
    def refusing(x: Any) -> Any:
        if x[0] > 0:
            raise KeyError("planted")
        return x.clone()

    refuses = operator(refusing)
    refuses.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: refuses(x) * 2)
    for _ in range(CALLS):
        assert torch.equal(compiled(-torch.ones(3)), torch.full((3,), -2.0))
    with pytest.raises(KeyError, match="planted"):
        compiled(torch.ones(3))


def test_namespaces_of_operators_break_nothing() -> None:
    name = f"n{uuid.uuid4().hex}"
    custom_op(f"{name}::double", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor").register_fake(
        torch.empty_like
    )
    compiled = torch.compile(lambda x: getattr(torch.ops, name).double(x) + 1)
    for _ in range(CALLS):
        assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
    assert report(compiled).startswith("1 program")
