"""Maxima of windows on a device, with channels innermost: a thread has a pack of channels, or one."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch


@pytest.mark.parametrize(("dtype", "channels"), [("bfloat16", 16), ("float32", 6)])
def test_maxima_places_and_gradients_are_those_of_the_cpu(dtype: str, channels: int) -> None:
    """Windows overlap, reach over the edge, and one finds a NaN; whole numbers tie, and add up without rounding."""
    torch.manual_seed(0)
    image = torch.randint(-4, 5, (2, channels, 7, 6)).to(getattr(torch, dtype))
    image[1, 3, 2, 2] = float("nan")
    found = []
    for device in ("cpu", "cuda"):
        x = image.to(device).contiguous(memory_format=torch.channels_last).requires_grad_()
        pooled, places = torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)
        weights = torch.arange(pooled.numel()).remainder(5).reshape(pooled.shape).to(pooled)
        (pooled.nan_to_num() * weights).sum().backward()
        found.append([pooled.stride(), *[_plain(each) for each in (pooled, places, x.grad)]])
    assert found[0] == found[1]


def _plain(tensor: Any) -> Any:
    return repr(tensor.detach().float().cpu().tolist())
