"""`flambeau demo`: it learns, says the same each time, and draws colours for terminals alone."""

from __future__ import annotations

import io
import re

import pytest

import flambeau
from flambeau._cli import demo

from .calls import call


class _Terminal(io.StringIO):
    """Text that is shown in a terminal."""

    def isatty(self) -> bool:
        return True


def _without_times(text: str) -> str:
    return re.sub(r"in [0-9.]+ s", "", text)


def test_it_learns_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (call(capsys, "demo", "--steps", 300) for _ in range(2))
    assert first.status == 0
    assert "right 100.0%" in first.out
    assert "\033" not in first.out
    assert _without_times(first.out) == _without_times(second.out)
    assert first.out.count("step ") == 1


def test_no_steps(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "demo", "--steps", 0)
    assert status == 1
    assert "--steps must be at least 1, got 0" in err


def test_colours_of_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    model = flambeau.nn.Linear(2, 1)
    lines = demo._picture(flambeau, model, _Terminal())
    assert len(lines) == demo._HEIGHT
    assert all(line.count("\u2580") == demo._WIDTH for line in lines)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in "".join(demo._picture(flambeau, model, _Terminal()))
