"""On the host, allocation n of a step fails, for every n: the report is right, and the next step too."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from tests.support.exhausted import host_allocation_fails
from tests.support.simulated_cuda import COMPILER


class Training:
    """A network and what a step of its training leaves, always from the same beginning."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net: Any = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)
        )  # fmt: skip
        self._begin = {name: each.clone() for name, each in self.net.state_dict().items()}
        self._x, self._target = torch.randn(5, 6), torch.tensor([0, 1, 2, 0, 1])

    def begin(self) -> None:
        """Let everything be as it was."""
        self.net.load_state_dict(self._begin)
        self.net.zero_grad()
        torch.manual_seed(1)

    def step(self) -> list[Any]:
        """One step: its loss, and everything after it."""
        optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)
        loss: Any = F.cross_entropy(self.net(self._x), self._target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        optimizer.step()
        return [loss.tolist(), *[each.tolist() for each in self.net.state_dict().values()]]


@pytest.mark.skipif(COMPILER is None, reason="what refuses memory is written in C")
def test_every_allocation_of_a_step_fails_in_turn() -> None:
    program, _largest = Training(), nn.Embedding(1000, 1000)
    for _ in range(3):
        program.begin()
        expected = program.step()
    program.begin()
    with host_allocation_fails(None) as counted:
        program.step()
    assert counted.count > 50
    reported = 0
    for place in range(counted.count):
        program.begin()
        try:
            with host_allocation_fails(place) as failing:
                found = program.step()
        except torch.OutOfMemoryError as error:
            text = str(error)
            for words in ("can't allocate memory", "live tensors hold", "parameter ", __file__, "What would help"):
                assert words in text, (place, words)
            reported += f"you tried to allocate {failing.asked} bytes" in text
        else:
            assert found == expected, f"allocation {place} failed, and nobody noticed"
        assert torch.is_grad_enabled()
        program.begin()
        assert program.step() == expected, f"the step after allocation {place} failed differs"
    assert reported > 50
