"""The programs in `examples/` run; a sample of them, for a few steps each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import gallery

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


def test_an_example_draws_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, EXAMPLES / "quantized_inference.py", "--size=16", f"--out={picture}"]
    subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_gallery_lists_every_program() -> None:
    programs = {each.relative_to(EXAMPLES).as_posix() for each in EXAMPLES.rglob("*.py") if each.name != "model.py"}
    assert programs == {each.path for each in gallery.PROGRAMS}


def test_the_gallery_shows_the_last_runs() -> None:
    """Every program has a picture and a dated run time, and the page is the one that the tool writes from them."""
    times = gallery.read_times()
    assert set(times) == {each.name for each in gallery.PROGRAMS}
    assert {each.stem for each in gallery.SHOWN.glob("*.png")} == set(times)
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(times), "run python -m tools.gallery --page"


@pytest.mark.parametrize("program", gallery.PROGRAMS, ids=lambda program: program.name)
def test_an_example_is_one_file(program: gallery.Program) -> None:
    """A user who copies the file (of `digits/`: the folder) has all of its code, and how to run it."""
    text = (EXAMPLES / program.path).read_text(encoding="utf-8")
    others = {each.stem for each in EXAMPLES.glob("*.py")}
    assert not others & set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE))
    assert f"examples/{program.path}" in text.split('"""')[1]
    assert '"--out"' in text
