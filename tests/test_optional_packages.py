"""llvmlite, ml-dtypes and oneDNN are optional: small programs run, and agree with PyTorch, in every combination."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

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


def close(found: Any, expected: Any, places: float) -> bool:
    if isinstance(expected, list):
        return len(found) == len(expected) and all(close(*each, places) for each in zip(found, expected, strict=True))
    if isinstance(expected, float):
        return abs(found - expected) <= places * (1 + abs(expected)) or (found != found and expected != expected)
    return bool(found == expected)


@pytest.fixture(scope="module")
def in_pytorch() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    from tests.support.small_programs import PROGRAMS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of parts that its modules use
        return {name: json.loads(json.dumps(program(torch))) for name, program in PROGRAMS.items()}


@pytest.mark.parametrize("missing", MISSING)
def test_programs_agree_with_pytorch_without(missing: str, in_pytorch: dict[str, Any]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLAMBEAU_LARGE": "64"}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, missing]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found, loaded = json.loads(run.stdout.splitlines()[-1])
    assert not set(loaded) & set(missing.split(","))
    assert found.keys() == in_pytorch.keys()
    differ = {
        name: (found[name], expected)
        for name, expected in in_pytorch.items()
        if not close(found[name], expected, 1e-2 if "bfloat16" in name else 1e-5)
    }
    assert not differ, differ
