"""The command that runs libraries' own tests: what counts as a difference, and that the list only shrinks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.oracle import pytorch
from tools.compatibility import suites
from tools.compatibility.suites import ADDED, GAPS, SUITES, Suite, differences, judge, outcomes

_TESTS = """
import subprocess, sys

import pytest, torch

def test_passes(): assert torch.ones(2).sum().item() == 2
def test_fails(): assert False
def test_skips(): pytest.skip("not now")
def test_finds_its_own_tests():
    import tests.helpers
def test_starts_processes_with_its_torch():
    command = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == torch.__version__
def test_knows_its_torch(): assert not hasattr(torch, "explain_me") and "flambeau" not in torch.__version__
"""


@pytest.mark.skipif(pytorch is None, reason="runs tests under PyTorch")
def test_outcomes_under_both(tmp_path: Path) -> None:
    (tmp_path / "test_small.py").write_text(_TESTS)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "helpers.py").touch()
    suite = Suite("1.0", ".")
    theirs = outcomes(Path(sys.executable), False, tmp_path, suite, 300)
    ours = outcomes(Path(sys.executable), True, tmp_path, suite, 300)
    assert {name.partition("::")[2]: outcome for name, outcome in theirs.items()} == {
        "test_passes": "passed", "test_fails": "assert False", "test_skips": "skipped",
        "test_knows_its_torch": "passed", "test_finds_its_own_tests": "passed",
        "test_starts_processes_with_its_torch": "passed",
    }  # fmt: skip
    assert list(differences(theirs, ours)) == ["test_small::test_knows_its_torch"]


def test_the_list_only_shrinks() -> None:
    theirs = {"a": "passed", "b": "passed", "c": "failed", "d": "passed"}
    ours = {"a": "passed", "b": "TypeError: no", "c": "failed"}
    found = differences(theirs, ours)
    assert found == {"b": "TypeError: no", "d": "not reached"}
    assert judge(found, ["b", "d"], ours) == []
    assert judge(found, ["b"], ours) == ["differs, and is not listed: d: not reached"]
    assert judge({}, ["a"], ours) == ["is listed, and passes: a"]


def test_a_suite_that_does_not_run_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suites, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(suites, "sources", lambda name, folder: tmp_path)
    monkeypatch.setattr(suites, "outcomes", lambda *args: {"a": "failed"})
    assert suites.run_suites(["einops"], tmp_path, Path(sys.executable), 1, False) == 1
    assert "no test passes under PyTorch" in capsys.readouterr().out


def test_listed_libraries_have_suites() -> None:
    if GAPS.exists():
        assert set(json.loads(GAPS.read_text())) <= set(SUITES)
    assert {each.name for each in ADDED.iterdir()} <= set(SUITES)
