"""`cat` in one launch, whatever the strides, with the strides that PyTorch's result has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flambeau

CASES: dict[str, Callable[[Any], tuple[list[Any], int]]] = {
    "rows": lambda t: ([t.arange(6).reshape(2, 3), t.arange(9).reshape(3, 3)], 0),
    "columns": lambda t: ([t.arange(8.0).reshape(2, 4), t.arange(16.0).reshape(2, 8)], 1),
    "odd columns": lambda t: ([t.arange(6).reshape(2, 3).to(t.int8), t.arange(10).reshape(2, 5).to(t.int8)], 1),
    "halves turned": lambda t: (list(t.arange(96.0).reshape(2, 3, 2, 8).transpose(1, 2).chunk(2, -1))[::-1], -1),
    "transposed": lambda t: ([t.arange(6.0).reshape(2, 3).t(), t.arange(6.0).reshape(3, 2)], 1),
    "middle": lambda t: ([t.arange(24.0).reshape(2, 3, 4), t.arange(16.0).reshape(2, 2, 4), t.zeros(2, 1, 4)], 1),
    "expanded": lambda t: ([t.arange(3.0).expand(2, 3), t.ones(2, 3, dtype=t.float64).float()], 1),
    "channels last": lambda t: (
        [t.arange(float(n * 12)).reshape(2, n, 3, 2).contiguous(memory_format=t.channels_last) for n in (2, 4)], 1,
    ),
    "16-bit": lambda t: ([t.arange(32).reshape(4, 8).to(t.bfloat16), t.arange(64).reshape(4, 16).to(t.bfloat16)], 1),
    "complex": lambda t: ([t.ones(2, 2, dtype=t.complex64), t.zeros(2, 3, dtype=t.complex64)], 1),
    "with nothing": lambda t: ([t.zeros(0), t.arange(4.0).reshape(2, 2), t.ones(1, 2)], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_joins(name: str) -> None:
    tensors, dim = CASES[name](torch)
    wanted = torch.cat(tensors, dim)
    mine, _ = CASES[name](flambeau)
    moved = [_on_device(each) for each in mine]
    found = flambeau.cat(moved, dim)
    assert str(found.device) == "cuda:0"
    assert found.stride() == wanted.stride()
    assert found.cpu().tolist() == wanted.tolist()


def _on_device(tensor: flambeau.Tensor) -> flambeau.Tensor:
    """The tensor with its own strides, where moving alone would give it others."""
    if 0 in tensor.stride():
        return tensor[:1].cuda().expand(tensor.shape)
    return tensor.cuda()
