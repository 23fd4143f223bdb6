"""Some random programs in every run. More of them: `python -m tests.fuzz KIND --seconds 600`."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.oracle import pytorch

from .kinds import KINDS
from .program import Program, judge, script, shrink, source
from .suite import examine

_SEEDS = {"training": 20, "tensors": 50, "around": 40, "functions": 60, "models": 10, "files": 100, "calls": 60}
_BATCH = 10


@pytest.mark.parametrize(
    ("kind", "first"), [(kind, first) for kind, count in _SEEDS.items() for first in range(0, count, _BATCH)]
)
def test_random_programs(kind: str, first: int) -> None:
    for seed in range(first, first + _BATCH):
        found = examine(kind, seed)
        assert found.failure is None, f"seed {seed}: {found.failure}\n{found.script}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_a_program(kind: str) -> None:
    write = KINDS[kind].write
    assert write(3) == write(3) != write(4)
    compile(source(write(3)), "program", "exec")


_WRONG: Program = (
    "values = []",
    "def function(x):",
    "    if x.dim() > 0:",
    "        y = x * 2",
    "        y = y + 1",
    "    return torch.nextafter(y, y + 1) if compiled else y",
    "compiled = compile(1)",
    "for turn in range(2):",
    "    values.append(turn)",
    "    see(function(torch.ones(2)))",
)


def test_a_failure_becomes_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit in the last place is found, and only the lines that it needs are left."""
    monkeypatch.setattr(flambeau, "compile", lambda given: given)
    monkeypatch.setattr("tests.fuzz.program._plain", lambda given: 0)
    found = judge(_WRONG)
    assert found is not None
    assert found.kind == ("plain and compiled", "value")
    short = shrink(_WRONG, judge, found.kind)
    assert [line.strip() for line in short] == [
        "def function(x):",
        "y = x * 2",
        "return torch.nextafter(y, y + 1) if compiled else y",
        "compiled = compile(1)",
        "see(function(torch.ones(2)))",
    ]


def test_the_script_runs_by_itself() -> None:
    seen: list[Any] = []
    text = script(("see(compile(lambda x: x + 1)(torch.ones(2)).sum().item())",))
    exec(compile(text.replace("see = print", "see = seen.append"), "script", "exec"), {"seen": seen})
    assert seen == [4.0]


_CANCELS: Program = (
    "x = torch.linspace(0.1, 0.9, 7, dtype=T.float64).sin()",
    "x = torch.nextafter(x, x + 1) if T.__name__ == 'flambeau' else x",
    "see((x * 3 - x * 0.7 - x * 2.3 + (wrong if T.__name__ == 'flambeau' else 0.0)).sum() * 1e16)",
)


@pytest.mark.skipif(pytorch is None, reason="PyTorch rounds at random")
def test_rounding_that_cancels_is_told_from_faults() -> None:
    """A last bit grows to a difference of ones; one that is no more than 1e-13 wrong is found all the same."""
    right, wrong = (("wrong = " + number, *_CANCELS) for number in ("0.0", "1e-13"))
    assert judge(right) is not None
    assert judge(right, chaotic=True) is None
    found = judge(wrong, chaotic=True)
    assert found is not None
    assert found.about == "value"
