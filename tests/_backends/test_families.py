"""The folders of the CPU's and of CUDA's kernels, and the tables that name modules in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import flambeau._backends
from flambeau._backends.cpu import lowerings as of_cpu
from flambeau._backends.cuda import lowerings as of_cuda
from flambeau._backends.families import PLACES

FOLDER = Path(flambeau._backends.__file__).parent
ON_ONE_SIDE = {"cpu": {"onednn"}, "cuda": {"arrays", "cudnn"}}
"""The vendors' libraries, and the arrays of CUDA devices: on the CPU they are NumPy's."""


def _folders(device: str) -> set[str]:
    return {each.name for each in (FOLDER / device).iterdir() if each.is_dir() and each.name != "__pycache__"}


def _exists(device: str, place: str) -> bool:
    return (FOLDER / device / f"{place.replace('.', '/')}.py").is_file()


def test_both_devices_have_the_same_folders() -> None:
    assert _folders("cpu") - ON_ONE_SIDE["cpu"] == _folders("cuda") - ON_ONE_SIDE["cuda"]


@pytest.mark.parametrize("family", sorted(PLACES))
def test_every_family_has_its_module(family: str) -> None:
    assert _exists("cpu", PLACES[family]) or _exists("cuda", PLACES[family])


@pytest.mark.parametrize(("device", "table"), [("cpu", of_cpu.KERNELS), ("cuda", of_cuda.KERNELS)], ids=["cpu", "cuda"])
def test_every_kernel_is_there(device: str, table: dict[str, str]) -> None:
    for name, place in table.items():
        family, _, function = place.partition(".")
        if family == "library":
            path = FOLDER / "cpu" / "onednn" / "kernels.py"
        else:
            path = FOLDER / device / f"{PLACES[family].replace('.', '/')}.py"
        source = path.read_text(encoding="utf-8")
        defined = re.search(rf"^(def |(\w+, )*){function}\b", source, re.MULTILINE)
        assert defined, f"{name}: {path} has no {function}"
