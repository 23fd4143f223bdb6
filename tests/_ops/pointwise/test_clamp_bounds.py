"""Bounds of `clamp`: numbers, tensors, and a tensor without dimensions beside a number."""

from __future__ import annotations

from typing import Any

from tests.support.differential import differential, outcome


@differential
def test_a_tensor_without_dimensions_is_a_number_beside_one(torch: Any) -> Any:
    x = torch.arange(5.0)
    return (
        torch.clamp(x, 1, torch.tensor(3)),
        torch.clamp(torch.arange(5), torch.tensor(1.5), 3),
        x.clone().clamp_(1, torch.tensor(2.0)),
        outcome(lambda: torch.clamp(x, 0, torch.tensor([3.0]))),
        outcome(lambda: torch.clamp(x, 0, torch.tensor(3.0, requires_grad=True))),
    )
