"""Modules without files: each has its names, and says what it lacks."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau._core.names.names_only import below, spec_of

MODULES = below("flambeau")
PACKAGE = Path(flambeau.__file__).parent


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_its_names(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__name__ == name
    assert module.__doc__
    spec = spec_of(name)
    assert spec is not None
    for each in dir(module):
        getattr(module, each)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        module.nothing_of_the_kind
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{name}.nothing_of_the_kind")
    path = PACKAGE.joinpath(*name.split(".")[1:])
    for folder in (path, PACKAGE / "_torch" / path.relative_to(PACKAGE)):
        assert not folder.with_suffix(".py").exists(), "the file would be found first"
        assert not (folder / "__init__.py").exists(), "the file would be found first"


def test_other_modules_are_not_found() -> None:
    assert spec_of("flambeau.nn") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("flambeau.xpu.nothing_of_the_kind")


def test_a_folder_that_an_older_version_left_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "memory" / "__pycache__").mkdir(parents=True)
    (tmp_path / "own.py").write_text("", encoding="utf-8")

    def found(name: str) -> Any:
        specs = (finder.find_spec(name, [str(tmp_path)], None) for finder in sys.meta_path)
        return next(filter(None, specs), None)

    of_names: Any = spec_of("flambeau.mtia.memory")
    assert type(found("flambeau.mtia.memory").loader) is type(of_names.loader)
    assert found("flambeau.mtia.own").origin == str(tmp_path / "own.py")
    assert found("flambeau.mtia.nothing_of_the_kind") is None
