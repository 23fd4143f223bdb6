"""The path from PyTorch in docs/start.md: its script runs under both libraries, each from the other's checkpoint."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.oracle import pytorch

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")


def losses(text: str) -> list[float]:
    return [float(line.split()[1]) for line in text.splitlines()]


def ours(folder: Path, *options: str) -> list[float]:
    """The losses that the script prints under `flambeau run`."""
    command = [sys.executable, "-m", "flambeau", "run", "train.py", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return losses(run.stdout)


@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
def test_a_script_goes_on_from_the_checkpoint_of_the_other_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def theirs(*options: str) -> list[float]:
        monkeypatch.setattr(sys, "argv", ["train.py", *options])
        runpy.run_path("train.py")
        return losses(capsys.readouterr().out)

    first = theirs("--save", "a.pt")
    second = ours(tmp_path, "--resume", "a.pt", "--save", "b.pt")
    assert second == pytest.approx(theirs("--resume", "a.pt"), abs=2e-6)
    third = theirs("--resume", "b.pt")
    assert ours(tmp_path, "--resume", "b.pt") == pytest.approx(third, abs=2e-6)
    shown = [float(number) for number in re.findall(r"\b0\.\d{6}\b", PAGE)]
    assert first + second + third == pytest.approx(shown, abs=1e-4)  # the last digits depend on the processor
