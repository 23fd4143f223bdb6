"""Libraries' own tests, under PyTorch and under Flambeau: `python -m tools.compatibility --suites`.

The tests come from the source distributions on PyPI, and run in one environment, which has PyTorch: once as they are,
and once with Flambeau standing in for `torch`. Tests that PyTorch passes and Flambeau does not are listed in
`suite_gaps.json`, which only becomes shorter: the command fails where another test differs, or a listed one passes.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
GAPS = Path(__file__).parent / "suite_gaps.json"
RESULTS = Path(__file__).parent / "suite_results.json"
CHILD = Path(__file__).parent / "suite_child.py"
ADDED = Path(__file__).parent / "added"
"""Files beside those of a source distribution, by library, where it lacks some that its tests need."""


class Suite(NamedTuple):
    """Where the tests of a library stand in its source distribution, and what they need."""

    version: str
    tests: str
    needs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Further arguments of pytest."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that the tests ask for."""
    files: tuple[str, ...] = ()
    """The files of it that run, where all take too long; none means all."""
    seconds: float = 60
    """The processor time that one test may take."""


SUITES: Mapping[str, Suite] = {
    "accelerate": Suite(
        "1.15.0",
        "tests",
        ("accelerate==1.15.0", "parameterized"),
        ("--ignore=test_examples.py", "--ignore=test_cli.py", "--ignore=test_tracking.py"),  # (they need further data)
    ),
    "array-api-compat": Suite("1.16.0", "tests", ("array-api-compat==1.16.0",)),
    "auraloss": Suite("0.4.0", "tests", ("auraloss==0.4.0",)),
    "deepinv": Suite("0.5.0", "deepinv/tests", ("deepinv==0.5.0",)),
    "e3nn": Suite("0.6.0", "tests", ("e3nn==0.6.0",)),
    "einops": Suite(
        "0.8.2", "einops/tests", ("einops==0.8.2", "parameterized"), (), (("EINOPS_TEST_BACKENDS", "numpy,torch"),)
    ),
    "einx": Suite("0.4.3", "test", ("einx==0.4.3",)),
    "ema-pytorch": Suite("0.8.3", "tests", ("ema-pytorch==0.8.3",)),
    "geotorch": Suite("0.3.0", "test", ("geotorch==0.3.0",)),  # (0.4.0 comes without its tests)
    "gpytorch": Suite("1.15.2", "test", ("gpytorch==1.15.2",), ("--ignore=examples",)),  # (these train for minutes)
    "julius": Suite("0.2.8", "tests", ("julius==0.2.8",)),
    "linear_operator": Suite("0.6.1", "test", ("linear_operator==0.6.1",)),
    "local-attention": Suite("1.11.2", "tests", ("local-attention==1.11.2",)),
    "neuraloperator": Suite("2.0.0", "neuralop", ("neuraloperator==2.0.0",)),
    "nflows": Suite("0.14", "tests", ("nflows==0.14", "torchtestcase")),
    "normflows": Suite("1.7.3", "normflows", ("normflows==1.7.3",)),
    "norse": Suite("1.1.0", "norse/torch", ("norse==1.1.0",)),
    "opacus": Suite("1.6.0", "opacus/tests", ("opacus==1.6.0",)),
    "opt_einsum": Suite("3.4.0", "opt_einsum/tests", ("opt_einsum==3.4.0",)),
    "peft": Suite("0.21.2", "tests", ("peft==0.21.2", "parameterized")),
    "pytorch-optimizer": Suite("4.1.0", "tests", ("pytorch-optimizer==4.1.0",)),
    "pytorch-revgrad": Suite("0.2.0", "tests", ("pytorch-revgrad==0.2.0",)),
    "pytorch-warmup": Suite("0.2.0", "test", ("pytorch-warmup==0.2.0",)),
    "safetensors": Suite("0.8.0", "bindings/python/tests", ("safetensors==0.8.0",)),
    "segmentation-models-pytorch": Suite("0.6.0", "tests", ("segmentation-models-pytorch==0.6.0",)),
    "skorch": Suite("1.4.0", "skorch/tests", ("skorch==1.4.0", "flaky")),
    "timm": Suite("1.0.31", "tests", ("timm==1.0.31",), ("--ignore=test_models.py",)),  # (that takes hours)
    "tntorch": Suite("1.1.2", "tests", ("tntorch==1.1.2",)),
    "torch-optimizer": Suite("0.3.0", "tests", ("torch-optimizer==0.3.0",)),
    "torch-pruning": Suite("1.6.1", "tests", ("torch-pruning==1.6.1",)),
    "torch-struct": Suite("0.5", "torch_struct", ("torch-struct==0.5",)),
    "torchinfo": Suite("1.7.0", "tests", ("torchinfo==1.7.0",)),
    "torchquad": Suite("0.6.0", "tests", ("torchquad==0.6.0",)),
    "torchsde": Suite("0.2.6", "tests", ("torchsde==0.2.6",)),
    "transformers": Suite(
        "5.23.0", "tests", ("transformers==5.23.0", "parameterized"), (), (), ("test_models.py",)
    ),  # (its distribution has the tests of every model without the models: they are in `added`)
    "xitorch": Suite(
        "0.5.1", "xitorch/_tests", ("xitorch==0.5.1",), ("--ignore=test_linop_fcns.py",)
    ),  # (that takes long)
    "zuko": Suite("1.6.0", "tests", ("zuko==1.6.0",), ("-k", "not univariate")),  # two depend on what is drawn
}


def sources(name: str, folder: Path) -> Path:
    """The unpacked source distribution of a library, downloaded if it is not there."""
    suite = SUITES[name]
    into = folder / f"{name}-{suite.version}"
    if not into.exists():
        with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=60) as answer:
            found = json.load(answer)
        newest = found["info"]["version"] == suite.version
        listed = found["urls"] if newest else found["releases"][suite.version]
        address = next(each["url"] for each in listed if each["packagetype"] == "sdist")
        with urllib.request.urlopen(urllib.parse.urljoin(f"https://pypi.org/simple/{name}/", address)) as answer:
            content = answer.read()
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(into, filter="data")
    root = next(each for each in into.iterdir() if each.is_dir())
    if (ADDED / name).exists():
        shutil.copytree(ADDED / name, root, dirs_exist_ok=True)
    return root


def outcomes(python: Path, stands_in: bool, root: Path, suite: Suite, limit: float) -> dict[str, str]:
    """What became of each test below `root`: "passed", "skipped" or what it failed with; of none if pytest did not run.

    The library's folder and a folder with Flambeau alone are on the path: not this project's `tests`. A test that ends
    the process fails, and the run goes on behind its file. Tests behind the limit in seconds are not reached.
    """
    until = time.monotonic() + limit
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "flambeau").symlink_to(ROOT / "flambeau")
        if stands_in:  # in processes that the tests start, too
            Path(folder, "sitecustomize.py").write_text("import flambeau.as_torch\n")
        report = Path(folder, "report.json")
        command = [str(python), str(CHILD), str(report), str(suite.seconds), "-q"]
        command += ["--continue-on-collection-errors", "-p", "no:cacheprovider", "-o", "addopts="]
        command += ["-p", "no:flaky"]  # (the plugin does not know newer versions of pytest)
        path = os.pathsep.join((str(root), folder))
        own = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **dict(suite.variables)}
        own.setdefault("LD_LIBRARY_PATH", str(python.parents[1] / "cuda-stand-ins"))
        done: set[str] = set()
        while True:
            report.write_text("")
            behind = [f"--ignore={each}" for each in sorted(done)]
            arguments = [*command, *suite.arguments, *behind, *(suite.files or (".",))]
            crashed = _ended_early(arguments, root / suite.tests, own, until - time.monotonic())
            running = ""
            for test, outcome, file in map(json.loads, report.read_text().splitlines()):
                done |= {file} - {""}
                running = test if outcome is None else ""
                if outcome is not None and found.get(test) in (None, "passed"):
                    found[test] = outcome
            if not (crashed and running):
                return found
            found[running] = "ended the process"


def _ended_early(command: Sequence[str], folder: Path, variables: Mapping[str, str], limit: float) -> bool:
    """Run a command until its limit; whether it ended itself by a signal."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, timeout=max(limit, 1), check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode < 0


def differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The tests that PyTorch passes and Flambeau does not, with the reasons, those that it did not reach included."""
    passed = sorted(test for test, outcome in theirs.items() if outcome == "passed")
    return {test: ours.get(test, "not reached") for test in passed if ours.get(test) != "passed"}


def judge(found: Mapping[str, str], listed: Iterable[str], run: Mapping[str, str]) -> list[str]:
    """What is wrong with a run, in sentences: tests that newly differ, and listed ones that pass."""
    newly = [f"differs, and is not listed: {each}: {why}" for each, why in found.items() if each not in listed]
    mended = [f"is listed, and passes: {each}" for each in listed if run.get(each) == "passed" and each not in found]
    return [*newly, *mended]


def run_suites(names: Sequence[str], folder: Path, python: Path, limit: float, update: bool) -> int:
    """Run the suites of some libraries, or of all; 1 if one differs otherwise than listed."""
    gaps: dict[str, dict[str, str]] = json.loads(GAPS.read_text()) if GAPS.exists() else {}
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    wrong = []
    for name in names or sorted(SUITES):
        suite, root = SUITES[name], sources(name, folder)
        theirs = outcomes(python, False, root, suite, limit)
        ours = outcomes(python, True, root, suite, limit)
        found = differences(theirs, ours)
        passed = sum(each == "passed" for each in theirs.values())
        if not passed:
            wrong.append(f"{name}: no test passes under PyTorch: did the suite run?")
            continue
        print(f"{name} {suite.version}: {passed - len(found)} of {passed} tests that PyTorch passes", flush=True)
        results[name] = {"version": suite.version, "pytorch": passed, "flambeau": passed - len(found)}
        if update:
            gaps[name] = found
        wrong += [f"{name}: {each}" for each in judge(found, gaps.get(name, {}), ours)]
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    if update:
        GAPS.write_text(json.dumps(gaps, indent=1, sort_keys=True) + "\n")
    print("\n".join(wrong))
    return int(bool(wrong))


def make_environment(folder: Path) -> Path:
    """The Python of an environment with PyTorch, the libraries and pytest, made below a folder if it is not there."""
    from .environments import PYTORCH, stand_ins_for_cuda

    own = folder / "suites"
    if not own.exists():
        subprocess.run([sys.executable, "-m", "venv", own], check=True)
        needs = sorted({each for suite in SUITES.values() for each in suite.needs})
        command = [
            str(own / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            PYTORCH,
            "pytest",
            "llvmlite",
            *needs,
        ]
        subprocess.run(command, check=True)
        stand_ins_for_cuda(own)
    return own / "bin" / "python"
