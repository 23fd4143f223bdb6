"""The programs in `examples/` run; a sample of them, for a few steps each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("program", "last_line"),
    [
        ("lstm_tagger.py --steps=30", r"the/D small/J dog/N read/V a/D letter/N"),
        ("gaussian_process.py --steps=40", r"x  6\.0  sin -0\.279  mean -0\.\d+  \+- 0\.\d+"),
        ("graph_network.py --steps=60", r"step  60  loss 0\.\d+  right [89]\d\.\d %"),
        ("neural_ode.py --steps=0", r"step   0  loss .*"),
    ],
)
def test_an_example_runs(program: str, last_line: str) -> None:
    name, option = program.split()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, EXAMPLES / name, option]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert re.fullmatch(last_line, run.stdout.splitlines()[-1])


def test_the_gallery_lists_every_program() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    programs = {each.relative_to(ROOT).as_posix() for each in EXAMPLES.rglob("*.py") if each.name != "model.py"}
    assert programs == set(re.findall(r"`(examples/[\w/]+\.py)`", page))
