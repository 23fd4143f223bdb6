"""softmax of rows that are longer than registers, begin anywhere, and hold numbers that are none."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

F = torch.nn.functional
LONG = 50257
"""The classes of a language model: of an odd length, so that packs begin anywhere in a row."""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_log_softmax_of_long_rows(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = (4 * torch.randn(3, LONG)).to(dtype)
    x[1, 17], x[1, -1] = -torch.inf, 60.0
    target = torch.tensor([0, LONG - 1, 12345])
    there: Any = x.cuda().requires_grad_()
    wide: Any = x.double().requires_grad_()
    F.cross_entropy(there, target.cuda(), reduction="sum").backward()
    F.cross_entropy(wide, target, reduction="sum").backward()
    found, expected = F.log_softmax(there.detach(), 1).cpu(), F.log_softmax(wide.detach(), 1)
    rounding = torch.finfo(dtype).eps
    assert torch.allclose(found.double(), expected, rounding, rounding)
    assert torch.allclose(F.softmax(there.detach(), 1).cpu().double(), expected.exp(), 2 * rounding, 1e-7)
    # The derivative knows the log-probabilities as they were rounded.
    assert torch.allclose(there.grad.cpu().double(), wide.grad, 20 * rounding, 1e-6)


def test_what_is_no_number_stays_in_its_row() -> None:
    x = torch.zeros(4, 3001, dtype=torch.bfloat16)
    x[1, 3000] = torch.nan
    x[2] = -torch.inf
    found = F.softmax(x.cuda(), 1).cpu()
    assert found.isnan().all(1).tolist() == [False, True, True, False]
    assert found[[0, 3]].unique().tolist() == [torch.tensor(1 / 3001).bfloat16().item()]
