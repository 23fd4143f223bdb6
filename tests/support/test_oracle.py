"""The list of what an older PyTorch does not pass names tests that exist."""

import ast
from pathlib import Path

import pytest

from .older_oracle import DIFFERS_BEFORE_2_13, DIFFERS_WITH_CUDA, names, reason_to_fail

ENTRIES = [
    entry for table in (DIFFERS_BEFORE_2_13, DIFFERS_WITH_CUDA) for entries in table.values() for entry in entries
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_entries_name_tests(entry: str) -> None:
    path, _, test = entry.partition("::")
    tree = ast.parse((Path(__file__).parents[2] / path).read_text())
    assert test.split("[")[0] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_stands_once() -> None:
    assert [entry for entry in ENTRIES if sum(names(other, entry) for other in ENTRIES) != 1] == []


def test_what_an_entry_means() -> None:
    assert names("a.py::test_x", "a.py::test_x")
    assert names("a.py::test_x", "a.py::test_x[1]")
    assert names("a.py::test_x[1", "a.py::test_x[12]")
    assert not names("a.py::test_x", "a.py::test_xy[1]")
    assert not names("a.py::test_x[1", "a.py::test_x[2]")
    whole = "tests/nn/test_transformer.py::test_whole[float32-plain]"
    assert reason_to_fail(whole, older=True, with_cuda=False) is not None
    assert reason_to_fail(whole, older=False, with_cuda=True) is None
    assert reason_to_fail("tests/nn/test_module.py::test_conversions", older=False, with_cuda=True) is not None
    assert reason_to_fail("tests/nn/test_transformer.py::test_causal_hints", older=True, with_cuda=True) is None
