"""Long sums beside PyTorch's: docs/accumulation.md has ten million elements, this some hundred thousand."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("accumulation_table", ROOT / "tools" / "accumulation_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["accumulation_table"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
QUICK = 96_000


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    """Let both libraries use so many: the order of sums depends on it."""
    before = [each.get_num_threads() for each in TOOL.LIBRARIES.values()]
    try:
        for each in TOOL.LIBRARIES.values():
            each.set_num_threads(number)
        yield
    finally:
        for each, count in zip(TOOL.LIBRARIES.values(), before, strict=True):
            each.set_num_threads(count)


@pytest.fixture
def two_threads() -> Iterator[None]:
    with _threads(2):
        yield


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("name", TOOL.CASES)
def test_no_less_accurate_than_pytorch(name: str) -> None:
    for dtype in TOOL.DTYPES:
        errors = TOOL.measured(name, dtype, QUICK)
        if (name, dtype) in TOOL.EXCEPTIONS:
            assert errors.too_large, f"{name} of {dtype} is accurate now: remove it from EXCEPTIONS"
        else:
            assert errors is None or not errors.too_large, (dtype, errors)


@pytest.mark.parametrize("name", ["mm", "linear"])
@pytest.mark.parametrize("size", [QUICK, 12 * QUICK])  # by two kernels
def test_products_by_one_thread(name: str, size: int) -> None:
    with _threads(1):
        errors = TOOL.measured(name, "float32", size)
    assert not errors.too_large, errors


def test_exceptions_are_of_cases() -> None:
    assert all(name in TOOL.CASES and dtype in TOOL.DTYPES for name, dtype in TOOL.EXCEPTIONS)


def test_the_page_has_every_case() -> None:
    text = TOOL.FILE.read_text()
    assert re.findall(r"^\| ([^|]+) \| (?:- |\d)", text, re.MULTILINE) == list(TOOL.CASES)
    assert set(re.findall(r"^- (.+) \((\w+)\)$", text, re.MULTILINE)) <= set(TOOL.EXCEPTIONS)
