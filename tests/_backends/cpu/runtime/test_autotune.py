"""Ways that are timed: the quickest is taken, kept on disk, and never looked for unless somebody wishes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import flambeau as torch
from flambeau._backends.cpu.runtime import autotune as choices
from flambeau._backends.tiers import generated
from flambeau.compiler._compiled import Compiled


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "choices"))
    monkeypatch.setattr(choices, "_known", {})


def _way(seconds: float, runs: list[float]) -> choices.Way:
    def run() -> None:
        runs.append(seconds)
        sleep(seconds)

    return lambda: run


def test_the_quickest_way_is_found_once_and_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[float] = []
    ways = {"slow": _way(0.02, runs), "quick": _way(0.0, runs)}
    assert choices.quickest("waiting", (3, "x"), ways) == "quick"
    assert {0.0, 0.02} <= set(runs)
    monkeypatch.setattr(choices, "_known", {})  # as in another process
    runs.clear()
    assert choices.quickest("waiting", (3, "x"), ways) == "quick"
    assert not runs


def test_other_facts_and_other_ways_are_timed_by_themselves() -> None:
    runs: list[float] = []
    assert choices.quickest("waiting", 1, {"a": _way(0.0, runs), "b": _way(0.02, runs)}) == "a"
    assert choices.quickest("waiting", 2, {"a": _way(0.02, runs), "b": _way(0.0, runs)}) == "b"
    assert choices.quickest("waiting", 1, {"c": _way(0.0, runs)}) == "c"


def test_tuning_is_of_the_thread_that_wishes_it() -> None:
    seen: list[bool] = []
    with choices.tuning():
        thread = threading.Thread(target=lambda: seen.append(choices.is_tuning()))
        thread.start()
        thread.join()
        assert choices.is_tuning()
    assert seen == [False]
    assert not choices.is_tuning()


def _asked(monkeypatch: pytest.MonkeyPatch, answer: str) -> list[str]:
    """What is timed; the answer is given."""
    asked: list[str] = []

    def quickest(what: str, facts: object, ways: dict[str, Callable[[], Callable[[], object]]]) -> str:
        assert repr(facts) == repr(facts)
        asked.append(what)
        for prepare in ways.values():
            prepare()()
        return answer if answer in ways else next(iter(ways))

    monkeypatch.setattr(choices, "quickest", quickest)
    return asked


@pytest.mark.parametrize("answer", ["fused", "apart"])
@pytest.mark.parametrize("options", [{"mode": "max-autotune"}, {"options": {"max_autotune": True}}])
def test_programs_are_planned_as_the_clock_says(
    answer: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _asked(monkeypatch, answer)

    def function(x: torch.Tensor) -> torch.Tensor:
        return ((x @ x) * 2 + 1).sqrt().log() - x.t()

    made = torch.compile(function, **options)
    x = torch.rand(8, 8)
    for _ in range(5):
        found = made(x)
    assert torch.equal(found, function(x))
    assert asked == ["segment"]
    run = vars(made)["_run"]
    assert isinstance(run, Compiled)
    (program,) = run.programs
    (call_list,) = program.__globals__["schedules"]
    names = [call[0].__name__ for call in call_list.calls]
    assert ("multiply" in names) == (answer == "apart")


def test_nothing_is_timed_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _asked(monkeypatch, "fused")
    made = torch.compile(lambda x: (x * 2 + 1).sqrt())
    for _ in range(5):
        made(torch.rand(8))
    assert not asked


def test_convolutions_are_timed_where_there_are_two_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, asked = generated("conv_blocks"), _asked(monkeypatch, "library")
    monkeypatch.setattr(blocks, "quickest", choices.quickest)
    model = torch.nn.Conv2d(1, 20, 5).eval()
    image = torch.randn(1, 1, 29, 27)
    with torch.no_grad():
        made = torch.compile(model, mode="max-autotune")
        for _ in range(5):
            found = made(image)
        assert np.array_equal(found.numpy(), model(image).numpy())
    assert set(asked) <= {"convolution", "segment"}
