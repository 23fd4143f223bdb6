"""Examples of public functions: almost all have one, and each prints what it shows, under Flambeau and PyTorch."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flambeau
from flambeau._dispatch.public.catalogue import METHODS
from flambeau._dispatch.public.docstrings import examples
from tests._dispatch.public.test_documentation import public_functions
from tests.support.oracle import older_than, pytorch

OPS = Path(flambeau.__file__).parent / "_ops"
FILES = sorted(OPS.rglob("examples/*.txt"))
WITHOUT = 0.03
"""The part of public functions that may have no example: those that PyTorch removed, or has for devices it lacks."""


@cache
def shown_examples() -> dict[str, dict[str, str]]:
    """What docstrings show, by the family and the name of the function."""
    found: dict[str, dict[str, str]] = {}
    for name, function in public_functions():
        plain = name.removeprefix("Tensor.")
        _, _, example = inspect.cleandoc(function.__doc__ or "").partition("\nExample:\n")
        found.setdefault(examples._family(plain), {})[name] = example
    return found


def family_of(file: Path) -> str:
    return ".".join((*file.parent.parent.relative_to(OPS).parts, file.stem))


def has(library: ModuleType, name: str) -> bool:
    """Whether a library has a function or a method with this name."""
    found: Any = library
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None or hasattr(library.Tensor, name)


def complaints(library: ModuleType, name: str, session: str) -> list[str]:
    """What doctest has to say about an example."""
    functional = importlib.import_module(f"{library.__name__}.nn.functional")
    test = doctest.DocTestParser().get_doctest(session, {"torch": library, "F": functional}, name, name, 0)
    found: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some functions are deprecated
        doctest.DocTestRunner(verbose=False).run(test, out=found.append)
    return found


def test_almost_every_public_function_has_an_example() -> None:
    shown = [bool(example) for family in shown_examples().values() for example in family.values()]
    assert len(shown) > 1000
    assert shown.count(False) <= WITHOUT * len(shown)


@pytest.mark.parametrize("file", FILES, ids=family_of)
def test_examples_print_what_they_show(file: Path) -> None:
    shown = shown_examples()[family_of(file)]
    assert not [each for name, example in shown.items() for each in complaints(flambeau, name, example)]


@pytest.mark.skipif(pytorch is None or older_than(2, 13), reason="needs PyTorch 2.13")
@pytest.mark.parametrize("file", FILES, ids=family_of)
def test_examples_print_the_same_under_pytorch(file: Path) -> None:
    shown = {name: each for name, each in shown_examples()[family_of(file)].items() if has(pytorch, name)}
    assert not [each for name, example in shown.items() for each in complaints(pytorch, name, example)]


def test_examples_of_methods_call_methods() -> None:
    docs = {name: inspect.getdoc(getattr(flambeau.Tensor, name)) or "" for name in METHODS if not name.startswith("_")}
    called = {name: examples.as_method(doc, name, name) for name, doc in docs.items()}
    changed = {name: doc.partition("\nExample:\n")[2] for name, doc in called.items() if doc != docs[name]}
    assert len(changed) > 150
    assert ">>> x.sum(dim=1, keepdim=True)" in changed["sum"]
    assert not [each for name, example in changed.items() for each in complaints(flambeau, name, example)]


def test_every_written_example_is_shown_and_calls_its_function() -> None:
    shown = {each for family in shown_examples().values() for each in family.values()}
    for file in FILES:
        for name, example in examples._of_family(family_of(file)).items():
            assert any(inspect.cleandoc(each) == example for each in shown), name
            assert re.search(rf"\b{name.rpartition('.')[2]}\(", example) or name.startswith(("_", "special_")), name


def test_other_names_and_in_place_forms_show_the_call_by_their_own_names() -> None:
    assert ">>> torch.absolute(x)" in (flambeau.absolute.__doc__ or "")
    assert ">>> torch.special.expit(x)" in (flambeau.special.expit.__doc__ or "")
    assert ">>> x.square_()\n" in (flambeau.Tensor.square_.__doc__ or "")
    assert ">>> x.less_(2)\n    tensor([1, 0, 0])" in (flambeau.Tensor.less_.__doc__ or "")
