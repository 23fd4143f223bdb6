"""How much an installation takes, before and after `flambeau trim`: limits that only shrink.

An environment of hard links stands in for an installed one: the files of the packages as their wheels list them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest

from .test_packaging import only_group

ROOT = Path(__file__).parent.parent
ALL = ("numpy", "ml-dtypes", "llvmlite", "onednn-cpu-gomp")
LIMITS = {  # megabytes of the packages: installed, after `flambeau trim`, after `flambeau trim --development`
    "all packages": (ALL, 402.4, 243.9, 242.2),
    "NumPy and ml-dtypes": (ALL[:2], 59.3, 47.5, 45.8),
}
OWN = 12.5, 12.5, 11.4
"""Those of Flambeau itself, which is in each of them: the only ones that grow, with what it can do."""
GOALS = {"all packages": 260, "NumPy and ml-dtypes": 60}
"""Megabytes after `flambeau trim`, of the packages and Flambeau together."""
PROGRAM = """
import json
from tests.support.small_programs import PROGRAMS
import flambeau
print(json.dumps([flambeau.__file__, {name: program(flambeau) for name, program in PROGRAMS.items()}]))
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the sizes of Linux on x86-64"
)


def link(files: Iterable[tuple[Path, Path]], environment: Path) -> None:
    """Link files into an environment: those of this one, under their names in `site-packages`."""
    packages = environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name, path in files:
        target = Path(os.path.normpath(packages / name))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target, follow_symlinks=False)
        except OSError:  # another file system
            shutil.copy2(path, target, follow_symlinks=False)


def installed(environment: Path, packages: tuple[str, ...]) -> None:
    """Make an environment of Flambeau and these packages, without compiled bytecode."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    for package in packages:
        files = [each for each in metadata.files(package) or () if each.suffix != ".pyc"]
        link(((Path(each), Path(str(each.locate()))) for each in files), environment)
    own = [path for path in (ROOT / "flambeau").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    link(((path.relative_to(ROOT), path) for path in own), environment)
    described = environment.parent / "METADATA", environment.parent / "RECORD"
    declared = re.findall(r'"(.+)",', only_group(r"^dependencies = \[([^]]*)\]", ROOT / "pyproject.toml"))
    lines = ["Metadata-Version: 2.1", "Name: flambeau", "Version: 0", *(f"Requires-Dist: {each}" for each in declared)]
    described[0].write_text("\n".join(lines) + "\n")
    described[1].write_text("".join(f"{path.relative_to(ROOT)},,\n" for path in own))
    link(((Path("flambeau-0.dist-info", path.name), path) for path in described), environment)


def megabytes(folder: Path) -> float:
    """The sizes of all files but compiled bytecode, in millions of bytes."""
    files = (path.lstat() for path in folder.rglob("*") if path.suffix != ".pyc")
    return sum(found.st_size for found in files if not stat.S_ISDIR(found.st_mode)) / 1e6


def sizes(environment: Path) -> tuple[float, float]:
    """The megabytes of the packages, and of Flambeau itself."""
    own = megabytes(next(environment.glob("lib/python*/site-packages/flambeau")))
    return megabytes(environment / "lib") - own, own


def run(environment: Path, *arguments: str) -> str:
    """What a command of the environment's Python prints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FLAMBEAU"))}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "FLAMBEAU_LARGE": "64"}
    command = [str(environment / "bin" / "python"), *arguments]
    ran = subprocess.run(command, cwd=environment, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


def results(environment: Path) -> object:
    """What small programs over the main parts of the API give."""
    shutil.copytree(ROOT / "tests" / "support", environment / "tests" / "support", dirs_exist_ok=True)
    file, found = json.loads(run(environment, "-c", f"import sys; sys.path.append('.')\n{PROGRAM}").splitlines()[-1])
    assert Path(file).is_relative_to(environment)
    return found


@pytest.mark.parametrize("kind", LIMITS)
def test_installations_stay_small_and_work_after_a_trim(tmp_path: Path, kind: str) -> None:
    packages, plain, trimmed, without_development = LIMITS[kind]
    environment = tmp_path / "environment"
    installed(environment, packages)
    found, wanted = [sizes(environment)], results(environment)
    kept = {each: path.stat().st_size for each in metadata.files("numpy") or () if (path := Path(str(each.locate())))}
    for arguments in (["trim"], ["trim", "--development"]):
        assert "freed" in run(environment, "-m", "flambeau", *arguments)
        found.append(sizes(environment))
    assert results(environment) == wanted
    assert "nothing to trim" in run(environment, "-m", "flambeau", "trim", "--development")
    if metadata.version("numpy") < "2.3":  # the last for Python 3.10 comes with 1.3 MB more, which a trim removes
        plain += 1.4
    for (size, own), limit, limit_of_own in zip(found, (plain, trimmed, without_development), OWN, strict=True):
        assert size <= limit, found
        assert own <= limit_of_own, found
    # The files of this environment, which the links share, are as before.
    assert all(Path(str(each.locate())).stat().st_size == size for each, size in kept.items())


def test_limits_are_within_the_goals() -> None:
    assert all(LIMITS[kind][2] + OWN[1] <= goal for kind, goal in GOALS.items())


def test_pages_say_these_sizes() -> None:
    for kind, row in (
        ("all packages", "`pip install flambeau`"),
        ("NumPy and ml-dtypes", "Flambeau, NumPy and ml-dtypes"),
    ):
        said = only_group(rf"^\| {row} \| (.+) \|$", ROOT / "docs" / "platforms.md").split(" | ")
        assert said == [str(round(limit + own)) for limit, own in zip(LIMITS[kind][1:], OWN, strict=True)]
