"""Elementwise functions at special numbers beside PyTorch: docs/special-values.md; a sample of it on every run."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flambeau

ROOT = Path(__file__).parents[1]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("special_values", ROOT / "tools" / "special_values.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["special_values"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
KNOWN: dict[str, Any] = json.loads(TOOL.KNOWN.read_text())
HERE = platform.machine() == KNOWN["machine"]
ELSEWHERE = KNOWN["elsewhere"].get(platform.machine()) if TOOL.torch.__version__.startswith("2.13") else None
"""The list of this processor, if it is not the one of the page; older versions of PyTorch differ elsewhere."""


def sampled(name: str) -> list[tuple[str, str]]:
    """Some dtypes and sizes for a function, others for the next: all together would take minutes."""
    every = [(dtype, size) for dtype in TOOL.DTYPES for size in TOOL.SIZES]
    start = zlib.crc32(name.encode()) % len(every)
    return [("float32", "few"), *[every[(start + 5 * step) % len(every)] for step in range(2)]]


@pytest.mark.skipif(
    not (HERE or ELSEWHERE),
    reason="there is no list of this processor, on which PyTorch's results differ here and there",
)
@pytest.mark.parametrize("name", TOOL.FUNCTIONS)
def test_agrees_with_pytorch_except_where_listed(name: str) -> None:
    for dtype, size in sampled(name) if HERE else [("float32", "few")]:
        for found in TOOL.compared(name, dtype, size):
            listed = (KNOWN if HERE else ELSEWHERE)["differences"].get(found.key, 0)
            assert len(found.at) <= listed, (found.key, found.at)
            assert len(found.at) >= listed, f"{found.key} differs less than listed: run tools/special_values.py"


def test_every_elementwise_op_is_compared() -> None:
    assert set(TOOL.registered()) <= set(TOOL.FUNCTIONS)


def test_what_differs_has_a_reason() -> None:
    explained = [name for names in KNOWN["reasons"].values() for name in names]
    assert len(set(explained)) == len(explained)
    assert {key.partition(" | ")[0] for key in KNOWN["differences"]} == set(explained)


def test_the_page_is_of_the_list() -> None:
    text = TOOL.PAGE.read_text()
    agree, total = map(int, re.findall(r"(\d+) of (\d+)\s+results\s+agree", text)[0])
    assert total - agree == sum(KNOWN["differences"].values())
    assert TOOL.of_others(KNOWN["elsewhere"]) in text
    assert all(" ".join(reason.split()) in " ".join(text.split()) for reason in KNOWN["reasons"])


@pytest.mark.parametrize("count", [3, 5000])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_results_with_numbers_are_of_the_dtype_that_they_say(dtype: str, count: int) -> None:
    """NumPy's functions of a number are float64; a kernel that reads such memory as float32 would read nonsense."""
    x = flambeau.ones(count, dtype=getattr(flambeau, dtype))
    for name, function in TOOL.FUNCTIONS.items():
        for operands in [(x,)] if function.operands == 1 else [(x, x), (x, 2), (2, x)]:
            try:
                result = function.call(flambeau, *operands)
            except (RuntimeError, NotImplementedError, TypeError, AttributeError):
                continue
            assert result._array.dtype == result.dtype.numpy, (name, dtype)
