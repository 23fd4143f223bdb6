"""`histc` of integers: a model with experts counts its tokens by it, on the device alone."""

from __future__ import annotations

import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8], ids=str)
def test_tokens_of_each_expert(dtype: torch.dtype) -> None:
    experts = torch.tensor([3, 0, 0, 2, 3, 3, 1, 7])
    counts = torch.histc(experts.to(dtype).cuda(), bins=8, min=0, max=7)
    assert counts.dtype is dtype
    assert counts.cpu().tolist() == [2, 1, 1, 3, 0, 0, 0, 1]


def test_the_range_of_the_data() -> None:
    assert torch.histc(torch.tensor([5, 5, 5]).cuda(), bins=2).cpu().tolist() == [0, 3]
    assert torch.histc(torch.tensor([0, 1, 9, 10]).cuda(), bins=2).cpu().tolist() == [2, 2]


def test_integers_are_refused_on_the_cpu_as_in_pytorch() -> None:
    with pytest.raises(NotImplementedError, match="histogram_cpu"):
        torch.histc(torch.tensor([1, 2]), bins=2)
    with pytest.raises(NotImplementedError):
        torch.histc(torch.tensor([True]).cuda(), bins=2)
