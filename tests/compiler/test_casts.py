"""Compiled inference under autocast: weights are cast once for each version, and never stale."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._core.version import memory_version
from flambeau.compiler.passes import casts as _casts

nn = torch.nn


class Counting:
    """A compiled network under autocast, beside the network itself, and how many casts the former makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 96))
        self.compiled = torch.compile(self.model)
        self.casts = 0
        lower = _casts.lowered

        def lowered(call):
            run = lower(call)

            def counted(*args):
                self.casts += 1
                return run(*args)

            return counted

        monkeypatch.setattr(_casts, "lowered", lowered)
        for _ in range(5):
            self.call()

    @property
    def weight(self):
        return self.model[0].weight

    def call(self) -> int:
        """Call both; how many weights were cast for it."""
        before, x = self.casts, torch.randn(4, 96)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            found, wanted = self.compiled(x), self.model(x)
        assert found.dtype is wanted.dtype
        assert torch.equal(found, wanted)
        return self.casts - before


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


def test_weights_are_cast_once(counting: Counting) -> None:
    assert counting.casts == 2
    assert counting.call() == 0


def test_a_changed_weight_is_cast_again(counting: Counting) -> None:
    with torch.no_grad():
        counting.weight.mul_(0.5)
    assert counting.call() == 1
    assert counting.call() == 0


def test_steps_of_an_optimizer_are_changes(counting: Counting) -> None:
    optimizer = torch.optim.SGD(counting.model.parameters(), 0.1)
    counting.model(torch.randn(4, 96)).sum().backward()
    optimizer.step()
    assert counting.call() == 2


def test_changes_by_data_count(counting: Counting) -> None:
    counting.weight.data.mul_(0.5)
    assert counting.call() == 1
    held = counting.weight.data.view(-1)
    assert counting.call() == 0
    held[3] = 7
    assert counting.call() == 1
    held.data.data.add_(1)
    assert counting.call() == 1


def test_memory_that_was_set_is_that_of_both(counting: Counting) -> None:
    value = torch.randn(96, 96)
    counting.weight.data = value
    assert counting.call() == 1
    value.mul_(2)
    assert counting.call() == 1
    counting.weight.data = counting.weight.data * 2
    assert counting.call() == 1
    assert counting.call() == 0


def test_another_parameter_in_the_same_memory_changes_it(counting: Counting) -> None:
    other = nn.Parameter(torch.randn(96, 96))
    other.data = counting.weight.data
    counting.call()
    with torch.no_grad():
        other.add_(1)
    assert counting.call() == 1


def test_what_is_known_outside_is_cast_in_every_call(counting: Counting) -> None:
    array = counting.weight.detach().numpy()
    counting.call()
    array[:] = 3
    assert counting.call() == 1
    storage = counting.model[2].weight.untyped_storage()
    counting.call()
    storage.fill_(0)
    assert counting.call() == 2


def test_conversions_of_the_module_count(counting: Counting) -> None:
    counting.model.double().float()
    assert counting.call() == 2
    assert counting.call() == 0


def test_a_cast_that_is_returned_is_new_in_every_call() -> None:
    layer = nn.Linear(96, 96)

    @torch.compile
    def cast():
        with torch.no_grad():
            return layer.weight.to(torch.bfloat16).t()

    for _ in range(6):
        cast().zero_()
    assert torch.equal(cast(), layer.weight.to(torch.bfloat16).t())


def test_training_casts_in_every_step(counting: Counting) -> None:
    compiled = torch.compile(counting.model)
    for _ in range(6):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            compiled(torch.randn(4, 96)).sum().backward()
    assert counting.casts == 2  # the backward pass of those is not for later calls


def test_versions_of_memory_stay_short() -> None:
    parameter = nn.Parameter(torch.randn(3))
    for _ in range(5):
        parameter.data = parameter.data * 2
    assert len(parameter._counter[2].counters) == 2
    assert parameter._version == 0
    before = memory_version(parameter._counter)
    parameter.data.zero_()
    assert memory_version(parameter._counter) != before
    assert parameter._version == 0
