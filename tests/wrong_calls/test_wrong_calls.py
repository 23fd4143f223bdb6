"""A part of the wrong calls, the same in every run: no crash, nothing internal in a message, no new difference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from . import compare

_ROOT = Path(__file__).parent.parent.parent
_PART = ("--groups", "16", "--every", "5")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, compare.Outcome]]:
    """Both libraries' outcomes, from two processes that run at the same time."""
    running = {
        library: subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.wrong_calls", "--collect", library, *_PART],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for library in ("pytorch", "flambeau")
    }
    found = {library: json.loads(process.communicate(timeout=600)[0]) for library, process in running.items()}
    assert found["pytorch"].keys() & found["flambeau"].keys(), "nothing was run"
    return found


def test_nothing_new_differs(outcomes: dict[str, dict[str, compare.Outcome]]) -> None:
    expected, actual = outcomes["pytorch"], outcomes["flambeau"]
    listed = compare.known()
    new = [
        f"{kind}: {key}: {expected[key]} in PyTorch, {actual[key]} in Flambeau"
        for kind, keys in compare.differences(expected, actual).items()
        for key in keys
        if not compare.is_known(listed, kind, key)
    ]
    assert not new, "\n".join(new)


def test_the_list_of_known_differences_only_shrinks(outcomes: dict[str, dict[str, compare.Outcome]]) -> None:
    old = compare.stale(compare.known(), outcomes["pytorch"], outcomes["flambeau"])
    assert not old, "listed, but no longer so:\n" + "\n".join(old)


def test_the_comparison_finds_each_class_of_difference() -> None:
    refusal = [["TypeError", "Exception"], "f(): argument 'x' must be int, not str"]
    assert compare.difference("f|x|str", refusal, refusal) is None
    assert compare.difference("f|x|str", refusal, ["ok"]) == "accepts"
    assert compare.difference("f|x|str", ["ok"], refusal) == "refuses"
    assert compare.difference("f|x|str", refusal, [["ValueError", "Exception"], "no"]) == "type"
    assert compare.difference("f|x|str", refusal, [["TypeError", "Exception"], "ufunc 'add' did not"]) == "leak"
    assert compare.difference("f|x|str", refusal, [["MemoryError", "Exception"], "Unable to allocate"]) == "memory"
    assert compare.difference("f|x|str", refusal, ["crash", -11]) == "crash"
    assert compare.difference("f|x|str", refusal, ["hang"]) == "hang"
