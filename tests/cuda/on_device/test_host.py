"""Ops without a kernel run on the host, and say so once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau._core.process.host_calls import HOST_OPS


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("ldl_factor", lambda x: torch.linalg.ldl_factor(x @ x.T)),
        ("histogramdd", lambda x: torch.histogramdd(x[:, :2], 3)),
    ],
)
def test_an_op_without_a_kernel_says_so_once(name: str, call: Any) -> None:
    x = torch.rand(4, 4).cuda()
    for key in [each for each in HOST_OPS if name in each]:
        del HOST_OPS[key]
    with pytest.warns(UserWarning, match=rf"{name}\w* ran on the host: it has no kernel for cuda") as given:
        call(x)
    assert [each.filename for each in given] == [__file__] * len(given)
    before = HOST_OPS.total()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(x)
    assert HOST_OPS.total() > before


def test_ops_with_kernels_say_nothing() -> None:
    before = HOST_OPS.total()
    x = torch.rand(4, 4, device="cuda", requires_grad=True)
    (torch.nn.functional.gelu(x @ x).softmax(1).sort(1).values.cumsum(0) + x.flip(0)).sum().backward()
    assert HOST_OPS.total() == before
