"""llvmlite, ml-dtypes and oneDNN are optional: small programs run, and agree with PyTorch, in every combination."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from .support.small_programs import EXPECTED, differences, results

ROOT = Path(__file__).parent.parent
OPTIONAL = ("ml_dtypes", "llvmlite", "onednn")
MISSING = [",".join(names) for count in range(4) for names in itertools.combinations(OPTIONAL, count)]

PROGRAM = """
import json, sys
from tests.support.missing_packages_plugin import hide
hide(sys.argv[1])
from tests.support.small_programs import PROGRAMS
import flambeau
results = {name: program(flambeau) for name, program in PROGRAMS.items()}
loaded = [name for name in ("ml_dtypes", "llvmlite") if sys.modules.get(name) is not None]
print(json.dumps([results, loaded]))
"""


@pytest.fixture(scope="module")
def in_pytorch() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of parts that its modules use
        return results(torch)


def test_the_numbers_for_other_machines_are_pytorchs(in_pytorch: dict[str, Any]) -> None:
    """Those with which programs are compared where PyTorch is not."""
    assert not differences(json.loads(EXPECTED.read_text(encoding="utf-8")), in_pytorch)


@pytest.mark.parametrize("missing", MISSING)
def test_programs_agree_with_pytorch_without(missing: str, in_pytorch: dict[str, Any]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLAMBEAU_LARGE": "64"}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, missing]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found, loaded = json.loads(run.stdout.splitlines()[-1])
    assert not set(loaded) & set(missing.split(","))
    differ = differences(found, in_pytorch)
    assert not differ, differ


def test_the_workflow_has_every_combination() -> None:
    """There the packages are missing indeed."""
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    listed = re.search(r"        packages:\n((?:          - .*\n)+)", text)
    assert listed is not None
    found = [set(line.strip(' -"').split()) for line in listed.group(1).splitlines()]
    packages = ("llvmlite", "ml-dtypes", "onednn-cpu-gomp")
    wanted = [set(names) for count in range(4) for names in itertools.combinations(packages, count)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))
