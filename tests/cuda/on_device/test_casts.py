"""Conversions between the types of real numbers: those of autocast, and those that are asked for."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

F = torch.nn.functional
_REAL = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_LAYOUTS = {
    "row by row": lambda x: x,
    "column by column": lambda x: x.transpose(0, 1),
    "permuted": lambda x: x.view(2, 3, 4).permute(2, 0, 1),
    "with gaps": lambda x: x[:, ::2],
    "expanded": lambda x: x[:, :1].expand(6, 3),
    "one number": lambda x: x[0, 0],
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_values_and_layouts_are_those_of_the_cpu(layout: str) -> None:
    numbers = torch.randn(6, 4)
    for source in _REAL:
        for target in _REAL:
            here, there = (_LAYOUTS[layout](numbers.to(source).to(place)).to(target) for place in ("cpu", "cuda"))
            assert there.dtype is target
            assert there.stride() == here.stride()
            assert there.cpu().equal(here)


_AUTOCAST = {
    "a product": (lambda x, w: x @ w, torch.bfloat16, 2),
    "linear": (lambda x, w: F.linear(x, w), torch.bfloat16, 2),
    "exp of a product": (lambda x, w: (x @ w).exp(), torch.float32, 3),
    "softmax of a product": (lambda x, w: (x @ w).softmax(1), torch.float32, 3),
    "layer_norm of a product": (lambda x, w: F.layer_norm(x @ w, (4,)), torch.float32, 3),
    "addcmul of both": (lambda x, w: torch.addcmul(x, x @ w, w), torch.float32, 3),
    "the weight again": (lambda x, w: (x @ w) @ w, torch.bfloat16, 2),
    "sigmoid": (lambda x, w: (x @ w).sigmoid(), torch.bfloat16, 2),
}


@pytest.mark.parametrize("name", _AUTOCAST)
def test_autocast_records_its_casts(name: str) -> None:
    function, dtype, casts = _AUTOCAST[name]
    x, w = (torch.randn(4, 4, device="cuda", requires_grad=True) for _ in range(2))
    with torch.autocast("cuda", torch.bfloat16):
        result = function(x, w)
    assert result.dtype is dtype
    assert len(_casts(result)) == casts
    result.float().sum().backward()
    assert x.grad.dtype is w.grad.dtype is torch.float32


def _casts(result: Any) -> list[Any]:
    found, waiting, seen = [], [result.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        found += [node] * (node.name() == "ToCopyBackward0")
        waiting += [each for each, _ in node.next_functions]
    return found
