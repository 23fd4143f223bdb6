"""Hooks of parameters run behind compiled calls: as often, in the order and with the gradients of the plain call."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import distributed, nn

CALLS = 6
Seen = list[tuple[str, Any]]


class Twice(nn.Module):
    """A layer is used twice: two gradients are added before its hooks run."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.last = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.again(self.again(self.first(x)).relu()).tanh())


def hooks_of_tensors(model: nn.Module, seen: Seen) -> list[Any]:
    def hook(name: str) -> Callable[[Any], Any]:
        def run(grad: Any) -> Any:
            seen.append((name, grad.clone()))
            return grad.clamp(-0.1, 0.1)

        return run

    return [each.register_hook(hook(name)) for name, each in model.named_parameters()]


def hooks_behind_gradients(model: nn.Module, seen: Seen) -> list[Any]:
    def hook(name: str) -> Callable[[Any], None]:
        return lambda parameter: seen.append((name, parameter.grad.clone()))

    return [each.register_post_accumulate_grad_hook(hook(name)) for name, each in model.named_parameters()]


def hooks_of_accumulators(model: nn.Module, seen: Seen) -> list[Any]:
    kept = []
    for name, each in model.named_parameters():
        node = each.expand_as(each).grad_fn.next_functions[0][0]
        kept += [node, node.register_hook(lambda given, made, name=name: seen.append((name, made[0].clone())))]
    return kept


HOOKS = {each.__name__: each for each in (hooks_of_tensors, hooks_behind_gradients, hooks_of_accumulators)}


def same(one: Seen, other: Seen) -> bool:
    return [name for name, _ in one] == [name for name, _ in other] and all(
        torch.equal(first, second) for (_, first), (_, second) in zip(one, other, strict=True)
    )


def both(change: Callable[[nn.Module, Seen], Any], **options: Any) -> tuple[Any, Any, Seen, Seen]:
    """Plain and compiled, each with hooks of its own."""
    model = Twice()
    twin = copy.deepcopy(model)
    seen: tuple[Seen, Seen] = [], []
    twin.kept, model.kept = change(twin, seen[0]), change(model, seen[1])
    return twin, torch.compile(model, **options), *seen


def losses(calls: tuple[Any, Any], x: Any) -> None:
    for call in calls:
        call(x).square().sum().backward()


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("options", [{}, {"dynamic": True}], ids=str)
def test_they_run_as_in_the_plain_call(name: str, options: dict[str, bool]) -> None:
    plain, compiled, expected, found = both(HOOKS[name], **options)
    for _ in range(CALLS):
        losses((plain, compiled), torch.randn(3, 5))
        assert len(expected) == 6
        assert same(expected, found)
        assert all(map(torch.equal, *[[p.grad for p in each.parameters()] for each in (plain, compiled)]))
        expected.clear(), found.clear()
    assert torch.compiler.explain(compiled).startswith("1 program, no call that could not be compiled")


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_come_and_go(name: str) -> None:
    plain, compiled, expected, found = both(lambda model, seen: [])
    for number in range(4 * CALLS):
        losses((plain, compiled), torch.randn(3, 5))
        assert same(expected, found), number
        assert bool(expected) == (6 <= number < 12)
        expected.clear(), found.clear()
        if number == 5:
            kept = HOOKS[name](plain, expected), HOOKS[name](compiled._orig_mod, found)
        if number == 11:
            for each in [each for several in kept for each in several if hasattr(each, "remove")]:
                each.remove()


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("begins_with", [False, True])
def test_a_step_that_runs_backward_runs_them_each_time(name: str, begins_with: bool) -> None:
    model = Twice()
    twin = copy.deepcopy(model)
    seen: tuple[Seen, Seen] = [], []
    # They may have an object for what few tensors have, though no hook.
    kept: list[Any] = [each.expand_as(each).grad_fn for own in (twin, model) for each in own.parameters()]

    def step(own: nn.Module, x: Any) -> Any:
        own.zero_grad()
        loss = own(x).square().sum()
        loss.backward()
        return loss.detach()

    compiled = torch.compile(lambda x: step(model, x))
    for number in range(2 * CALLS):
        if number == (0 if begins_with else CALLS):
            kept += [HOOKS[name](twin, seen[0]), HOOKS[name](model, seen[1])]
        x = torch.randn(3, 5)
        assert torch.equal(step(twin, x), compiled(x))
        assert same(*seen), number
        assert len(seen[0]) == 6 * (number >= (0 if begins_with else CALLS))
        assert all(map(torch.equal, *[[p.grad for p in each.parameters()] for each in (twin, model)]))
        seen[0].clear(), seen[1].clear()


class Heads(nn.Module):
    """Two results, which a loss may leave out."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.one, self.other = nn.Linear(5, 5), nn.Linear(5, 2), nn.Linear(5, 2)

    def forward(self, x: Any) -> Any:
        inside = self.trunk(x).tanh()
        return self.one(inside), self.other(self.other.weight.new_zeros(5) + inside)


@pytest.mark.parametrize("name", HOOKS)
def test_results_that_no_loss_uses_run_no_hooks(name: str) -> None:
    model = Heads()
    twin = copy.deepcopy(model)
    seen: tuple[Seen, Seen] = [], []
    kept = HOOKS[name](twin, seen[0]), HOOKS[name](model, seen[1])
    compiled = torch.compile(model)
    for number in range(3 * CALLS):
        x = torch.randn(3, 5)
        for call in (twin, compiled):
            first, second = call(x)
            (first + second if number % 3 == 0 else (first, second)[number % 2]).square().sum().backward()
        assert len(seen[0]) == (6 if number % 3 == 0 else 4)
        assert same(*seen), number
        assert all(
            map(torch.equal, *[[p.grad for p in each.parameters() if p.grad is not None] for each in (twin, model)])
        )
        seen[0].clear(), seen[1].clear()
    assert len(kept) == 2


def test_an_optimizer_may_step_within_the_backward_pass() -> None:
    def optimize(model: nn.Module, seen: Seen) -> list[Any]:
        optimizers = {each: torch.optim.AdamW([each], lr=0.1) for each in model.parameters()}

        def hook(parameter: Any) -> None:
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        return [each.register_post_accumulate_grad_hook(hook) for each in model.parameters()]

    plain, compiled, *_ = both(optimize)
    for _ in range(CALLS):
        losses((plain, compiled), torch.randn(3, 5))
        assert all(map(torch.equal, plain.parameters(), compiled.parameters()))
    assert torch.compiler.explain(compiled).startswith("1 program, no call that could not be compiled")


@pytest.mark.parametrize("outside", [False, True])
def test_replicas_of_processes(outside: bool) -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29571")
    begins = not distributed.is_initialized()
    if begins:
        distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        model = Twice()
        twin = copy.deepcopy(model)
        wrapped = nn.parallel.DistributedDataParallel(model if outside else torch.compile(model))
        compiled = torch.compile(wrapped) if outside else wrapped
        for _ in range(12):
            losses((twin, compiled), torch.randn(3, 5))
            gradients = [[p.grad for p in each.parameters()] for each in (twin, model)]
            assert all(map(torch.equal, *gradients))
            for each in (twin, model):
                each.zero_grad()
        told = torch.compiler.explain(compiled if outside else wrapped.module)
        assert told.startswith("1 program")
    finally:
        if begins:
            distributed.destroy_process_group()
