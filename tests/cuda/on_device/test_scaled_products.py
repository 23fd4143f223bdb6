"""Products of matrices of 8-bit floats on a device: as on the CPU, and on a GPU as PyTorch's on that GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch as pytorch

import flambeau as torch

from .conftest import is_simulated


def _product(frame: Any, device: str, types: tuple[str, str], result: str, rows: int, quick: bool) -> Any:
    frame.manual_seed(0)
    left = frame.randn(rows, 64).to(getattr(frame, types[0])).to(device)
    right = frame.randn(48, 64).to(getattr(frame, types[1])).to(device).t()
    scales = [frame.tensor(each).to(device) for each in (0.5, 3.0)]
    found = frame._scaled_mm(left, right, *scales, out_dtype=getattr(frame, result), use_fast_accum=quick)
    return found.float().cpu()


@pytest.mark.parametrize("types", [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn")])
@pytest.mark.parametrize("result", ["bfloat16", "float32"])
@pytest.mark.parametrize("quick", [False, True])
def test_as_on_the_cpu_and_in_pytorch(types: tuple[str, str], result: str, quick: bool) -> None:
    for rows in (16, 30):
        found = _product(torch, "cuda", types, result, rows, quick)
        wanted = _product(torch, "cpu", types, result, rows, quick)
        close = 1e-2 if result == "bfloat16" else 1e-3  # the library adds up in fewer bits than float32 has
        assert torch.allclose(found, wanted, close, 40 * close)
        if not is_simulated() and pytorch.cuda.is_available():
            assert found.tolist() == _product(pytorch, "cuda", types, result, rows, quick).tolist()
