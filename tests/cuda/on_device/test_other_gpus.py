"""Products and convolutions have the bits of another GPU of the architecture at "run", and need a level for that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reproducible.other_gpus import UNWRITTEN


def _digests(file: Path, gpu: str, level: str, only: str) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.reproducible.other_gpus", str(file), "--part", "0", "--jobs", "1"]
    subprocess.run([*command, "--gpu", gpu, "--level", level, "--only", only], check=True)
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.needs_gpu
@pytest.mark.parametrize("only", ["product (*, 768, 100) float32*", "convolution (2, 32,*"])
def test_another_gpu_gives_the_same_bits(tmp_path: Path, only: str) -> None:
    own, other = (_digests(tmp_path / "found", gpu, "run", only) for gpu in ("", "H20"))
    assert own.pop("multiprocessors") != other.pop("multiprocessors")
    assert len(own) >= 8
    assert {name: each for name, each in other.items() if not each.endswith(UNWRITTEN) and each != own[name]} == {}


@pytest.mark.needs_gpu
def test_without_a_level_it_does_not(tmp_path: Path) -> None:
    own, other = (_digests(tmp_path / "found", gpu, "none", "product (*, 768, 100) float32*") for gpu in ("", "H20"))
    assert any(own[name] != other[name] for name in own if name != "multiprocessors")
