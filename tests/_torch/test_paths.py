"""PyTorch's private modules live in one folder and keep PyTorch's paths."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import pytest

import flambeau

FOLDER = Path(flambeau.__file__).parent / "_torch"
OWN = {"_rare_names", "_stand_in"}
"""Modules of the folder that PyTorch does not have."""


def test_the_package_lists_what_the_folder_holds() -> None:
    held = {each.stem for each in FOLDER.iterdir() if each.name not in ("__init__.py", "__pycache__")}
    assert held - OWN == set(flambeau._OF_PYTORCH)


@pytest.mark.parametrize("name", sorted({*flambeau._OF_PYTORCH, "_C._nn", "_dynamo.config", "_subclasses.fake_tensor"}))
def test_both_paths_give_one_module(name: str) -> None:
    short = importlib.import_module(f"flambeau.{name}")
    assert importlib.import_module(f"flambeau._torch.{name}") is short
    assert sys.modules[f"flambeau._torch.{name}"] is sys.modules[f"flambeau.{name}"]
    assert short.__name__ == f"flambeau.{name}"
    assert short.__spec__ is not None
    assert short.__spec__.name == f"flambeau.{name}"
    assert Path(str(short.__file__)).is_relative_to(FOLDER)


def test_pickles_name_the_short_path() -> None:
    wrapper = importlib.import_module("flambeau._torch._utils").ExceptionWrapper
    assert b"flambeau._utils" in pickle.dumps(wrapper)
    assert b"_torch" not in pickle.dumps(wrapper)


def test_an_unknown_module_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"flambeau\._no_such_module"):
        importlib.import_module("flambeau._torch._no_such_module")
