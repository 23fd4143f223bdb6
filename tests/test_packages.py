"""What users install: wheels and source archives to the byte, the stand-in beside the package, recipe and image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import flambeau

from .test_packaging import only_group, project_files

ROOT = Path(__file__).parent.parent
BUILT = ("flambeau", "packages/torch-shim", "pyproject.toml", "README.md", "LICENSE")


def copy_of_the_project(folder: Path) -> Path:
    for path in project_files():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(BUILT):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)  # without its times
    return folder


def build(source: Path, target: Path, *kinds: str) -> dict[str, bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *[f"-t{kind}" for kind in kinds]]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in target.iterdir()}


def test_two_builds_are_the_same_to_the_byte(tmp_path: Path) -> None:
    """In folders of other names, at other times, by users who share their files more or less."""
    pytest.importorskip("hatchling")
    first = build(copy_of_the_project(tmp_path / "one"), tmp_path / "first", "sdist", "wheel")
    before = os.umask(0o077)
    try:
        source = copy_of_the_project(tmp_path / "another" / "place")
        for path in source.rglob("*"):
            os.utime(path, (10**9, 10**9))
        second = build(source, tmp_path / "second", "sdist", "wheel")
    finally:
        os.umask(before)
    assert sorted(name.rpartition("-")[2] for name in first) == ["0.3.0.tar.gz", "any.whl"]
    assert first == second


ALL = {"llvmlite", "ml-dtypes", "numpy"}
WHEELS = {  # operating system, machine and Python: the packages with a wheel there, in November 2026
    ("linux", "x86_64", "3.10"): ALL | {"onednn-cpu-gomp"},
    ("linux", "x86_64", "3.14"): ALL | {"onednn-cpu-gomp"},
    ("linux", "aarch64", "3.12"): ALL,
    ("linux", "ppc64le", "3.12"): {"numpy"},
    ("linux", "riscv64", "3.14"): {"numpy"},
    ("darwin", "arm64", "3.14"): ALL,
    ("darwin", "x86_64", "3.13"): ALL,
    ("darwin", "x86_64", "3.14"): ALL - {"llvmlite"},
    ("win32", "AMD64", "3.10"): ALL,
    ("win32", "ARM64", "3.11"): ALL - {"llvmlite"},
    ("win32", "ARM64", "3.12"): ALL,
    ("win32", "x86", "3.12"): {"numpy"},
    ("emscripten", "wasm32", "3.13"): {"numpy"},
}


@pytest.mark.parametrize("system", WHEELS, ids="-".join)
def test_only_packages_with_wheels_are_asked_for(system: tuple[str, str, str]) -> None:
    """A package without one would be compiled, by tools that few machines have."""
    requirements = pytest.importorskip("packaging.requirements")
    platform, machine, python = system
    name = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows", "emscripten": "Emscripten"}[platform]
    environment = {"sys_platform": platform, "platform_machine": machine, "platform_system": name}
    environment |= {"python_version": python, "python_full_version": f"{python}.0"}
    declared = only_group(r"^dependencies = \[([^]]*)\]", ROOT / "pyproject.toml")
    parsed = [requirements.Requirement(each) for each in re.findall(r'"(.+)",', declared)]
    asked = [each for each in parsed if each.marker is None or each.marker.evaluate(environment)]
    assert sorted(each.name for each in asked) == sorted(WHEELS[system])
    if platform == "darwin" and machine == "x86_64":  # the last release with a wheel
        assert all("0.46.0" not in each.specifier for each in asked if each.name == "llvmlite")


def test_the_stand_in_and_the_package_have_no_file_in_common(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    source = copy_of_the_project(tmp_path / "source")
    build(source, tmp_path / "package", "wheel")
    build(source / "packages" / "torch-shim", tmp_path / "stand-in", "wheel")
    names = []
    for folder in ("package", "stand-in"):
        (wheel,) = (tmp_path / folder).iterdir()
        names.append(set(zipfile.ZipFile(wheel).namelist()))
    assert "flambeau/__init__.py" in names[0]
    assert "torch/__init__.py" in names[1]
    assert not names[0] & names[1]


def test_the_stand_in_asks_for_this_version() -> None:
    shim = ROOT / "packages" / "torch-shim" / "pyproject.toml"
    assert only_group(r'^dependencies = \["flambeau==(.+)"\]', shim) == flambeau.__version__


def test_the_recipe_asks_for_what_the_package_does() -> None:
    recipe = ROOT / "packages" / "conda" / "recipe.yaml"
    assert only_group(r'^  version: "(.+)"', recipe) == flambeau.__version__
    declared = only_group(r"^dependencies = \[([^]]*)\]", ROOT / "pyproject.toml")
    needed = dict(re.findall(r'"([\w-]+)(>=[\d.]+)', declared))
    del needed["onednn-cpu-gomp"]  # conda's channels do not have it
    run = only_group(r"  run:\n((?:    - .*\n)+)", recipe)
    given = dict(re.findall(r"- ([\w-]+) (>=[\d.]+)", run))
    assert given.pop("python") == only_group(r'^requires-python = "(.+)"', ROOT / "pyproject.toml")
    assert {name.replace("_", "-"): version for name, version in given.items()} == needed


def test_the_recipe_can_be_parsed() -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "packages" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["package"] == {"name": "flambeau", "version": "${{ version }}"}
    assert recipe["build"]["noarch"] == "python"
    assert recipe["build"]["python"]["entry_points"] == ["flambeau = flambeau._cli.main:main"]


def test_the_image_is_built_from_files_that_exist() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    kept = {name.removeprefix("!") for name in ignored if name.startswith("!")}
    assert kept == {"flambeau", "pyproject.toml", "README.md", "LICENSE"}
    assert all((ROOT / name).exists() for name in kept)
    image = (ROOT / "packages" / "docker" / "Dockerfile").read_text(encoding="utf-8")
    last_stage = image.rpartition("\nFROM ")[2]
    assert last_stage.startswith("scratch\n")  # what an earlier layer has stays in an image, removed or not
    assert re.findall(r"^(?:COPY|ADD|RUN).*", last_stage, re.MULTILINE) == ["COPY --from=build /image /"]
