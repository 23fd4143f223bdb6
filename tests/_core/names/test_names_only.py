"""Modules without files: each has its names, and says what it lacks."""

from __future__ import annotations

import importlib
from pathlib import Path

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
