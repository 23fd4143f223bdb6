"""The package as a whole: what importing it loads, its version, and what its files must not contain."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "flambeau"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])
RUNTIME_DEPENDENCIES = {"numpy", "ml_dtypes", "llvmlite", "onednn_cpu_gomp"}
OLDEST_PYTHON = (3, 10)

VENDOR = re.compile(
    r"llvm|onednn(?!_backend_config\b| import get_)|\b(?:lib)?dnnl|\bcupy|"
    r"cudnn(?!_(?:enabled?|attention)\b|RnnBackward0\b)|\bnccl|\bmpi(?:4py)?\b",
    re.IGNORECASE,
)
FULL_OF_PYTORCHS_NAMES = {"qconfig.py", "collect_env.py", "onednn.py"}
"""Lists of PyTorch's operators, of its names of quantized engines, and of what its report on a machine has."""
FOLDERS_ABOUT_VENDORS = {"_codegen", "_backends", "backends", "cuda", "distributed"}
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:work|root|home|Users|tmp|opt)/[\w.-]+")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def matching_lines(path: Path, pattern: re.Pattern[str]) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if pattern.search(text) is None:  # most files, read at once
        return []
    lines = enumerate(text.splitlines(), 1)
    return [f"{relative(path)}:{number}: {line}" for number, line in lines if pattern.search(line)]


def only_group(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None, f"{pattern!r} is not in {relative(path)}"
    return match.group(1)


def project_files() -> list[Path]:
    """What git tracks or would track."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_import_loads_only_the_runtime_dependencies() -> None:
    program = (
        "import sys; before = set(sys.modules); import flambeau;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name for name in run.stdout.split() if not name.startswith("_sysconfigdata")}
    assert {"flambeau", "numpy"} <= loaded
    assert loaded - set(sys.stdlib_module_names) == {"flambeau", "numpy"}


def test_import_prints_nothing_and_warns_of_nothing() -> None:
    command = [sys.executable, "-W", "error", "-c", "import flambeau"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_every_module_can_be_imported() -> None:
    found = {info.name for info in pkgutil.walk_packages(flambeau.__path__, "flambeau.")}
    assert len(found) > 1000
    for name in sorted(found - {"flambeau.as_torch"}):  # which takes PyTorch's place, and must be the first to do so
        importlib.import_module(name)


def test_version_is_the_same_everywhere() -> None:
    version = flambeau.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version)
    assert only_group(r'^version = "(.+)"', ROOT / "pyproject.toml") == version
    assert only_group(r"^## \[(\S+)\]", ROOT / "CHANGELOG.md") == version
    assert only_group(r"^version: (\S+)", ROOT / "CITATION.cff") == version
    assert json.loads((ROOT / "docs" / "versions.json").read_text(encoding="utf-8"))[0] == version


def test_the_changelog_has_the_form_that_tools_read() -> None:
    """That of keepachangelog.com: versions with dates, the newest first, and in each the kinds of changes."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)", text, re.MULTILINE)
    found = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d", head) for head in heads]
    assert all(found), heads
    versions = [tuple(map(int, each.groups())) for each in found if each]
    assert versions == sorted(versions, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)", text, re.MULTILINE)) <= kinds


def test_declared_dependencies_are_the_ones_imported() -> None:
    listed = only_group(r"^dependencies = \[([^]]*)\]", ROOT / "pyproject.toml")
    assert {name.replace("-", "_") for name in re.findall(r'"([\w-]+)', listed)} == RUNTIME_DEPENDENCIES


def test_oldest_python_is_the_same_everywhere() -> None:
    """By its target the linter knows which syntax is too new."""
    minimum = ".".join(map(str, OLDEST_PYTHON))
    assert only_group(r'^requires-python = ">=(.+)"', ROOT / "pyproject.toml") == minimum
    assert only_group(r'^target-version = "(.+)"', ROOT / "pyproject.toml") == "py" + minimum.replace(".", "")


def test_package_is_typed_and_complete() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert not [relative(path) for path in SOURCES if not (path.parent / "__init__.py").exists()]


def test_vendors_are_named_only_where_they_are_used() -> None:
    outside = [
        path
        for path in SOURCES
        if path.relative_to(PACKAGE).parts[0] not in FOLDERS_ABOUT_VENDORS and path.name not in FULL_OF_PYTORCHS_NAMES
    ]
    assert outside
    assert not [line for path in outside for line in matching_lines(path, VENDOR)]


@pytest.mark.parametrize("line", ["import llvmlite", "# oneDNN", "libdnnl.so", "cupy.empty", "cuDNN", "NCCL", "MPI"])
def test_vendor_pattern_finds_each_vendor(line: str) -> None:
    assert VENDOR.search(line)


def test_no_file_names_a_path_of_one_machine() -> None:
    text_files = [path for path in project_files() if b"\0" not in path.read_bytes()]
    assert text_files
    assert not [line for path in text_files for line in matching_lines(path, MACHINE_PATH)]


@pytest.mark.parametrize("folder", ["work", "root", "home", "Users", "tmp", "opt"])
def test_machine_path_pattern_finds_paths_and_spares_addresses(folder: str) -> None:
    assert MACHINE_PATH.search(f'open("/{folder}/data.pt")')
    assert not MACHINE_PATH.search(f"https://example.org/{folder}/page")


def test_digits_are_a_balanced_split_without_overlap() -> None:
    with np.load(ROOT / "examples/digits/mnist5k.npz") as arrays:
        digits = {name: arrays[name] for name in arrays.files}
    for split, each in (("train", 400), ("test", 100)):
        images, labels = digits[f"{split}_images"], digits[f"{split}_labels"]
        assert images.dtype == labels.dtype == np.uint8
        assert images.shape == (10 * each, 28, 28)
        assert np.bincount(labels).tolist() == [each] * 10
        assert (np.diff(labels.astype(int)) < 0).any()  # shuffled, not sorted by class
    train = {image.tobytes() for image in digits["train_images"]}
    test = {image.tobytes() for image in digits["test_images"]}
    assert len(train) == 4000
    assert len(test) == 1000
    assert not train & test


def test_few_places_tell_the_type_checker_to_look_away() -> None:
    found = [line for path in SOURCES for line in matching_lines(path, re.compile(r"# type: ignore"))]
    assert len(found) <= 60, "\n".join(found)
