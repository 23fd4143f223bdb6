"""Products of groups of rows, as a model with experts makes them, with ends of groups that lie on the device."""

from __future__ import annotations

from typing import Any

import flambeau as torch

F = torch.nn.functional


def _products(device: str) -> list[Any]:
    """The rows of each expert times its matrix, one expert without a row, and the gradients."""
    torch.manual_seed(0)
    rows, experts = torch.randn(32, 8), torch.randn(4, 8, 16)
    given: list[Any] = [each.to(device).requires_grad_() for each in (rows, experts)]
    ends = torch.tensor([10, 20, 20, 32], dtype=torch.int32, device=device)
    made = F.grouped_mm(*given, offs=ends)
    made.square().sum().backward()
    return [each.detach().cpu() for each in (made, *[one.grad for one in given])]


def test_groups_of_rows() -> None:
    for found, expected in zip(_products("cuda"), _products("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
