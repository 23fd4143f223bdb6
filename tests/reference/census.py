"""Which public callables lack a described parameter, a described result or an example that the tests run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import flambeau
from flambeau._ops.tensor.legacy import TENSOR_TYPES
from flambeau.amp import _deprecated
from flambeau.nn import Module
from tests._dispatch.public.test_examples import shown_examples
from tests.test_docs import EXAMPLES, ROOT

GAPS = Path(__file__).with_name("gaps.json")
_ARGS = re.compile(r"^Args:\n((?:(?: {4}.*)?\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\*{0,2}\w[*\w, ]*?)(?: \(.*?\))?:", re.MULTILINE)
_RESULT = re.compile(r"^(Returns|Shape|Yields):$", re.MULTILINE)
_NO_RESULT = ("None", "NoReturn", None)
_RUN = {example.source for test in EXAMPLES for example in test.examples}
_PARSE = doctest.DocTestParser().get_examples

Census = dict[str, list[str]]


def lacking() -> Census:
    """For each of `parameters`, `returns` and `example` the full names of the callables that lack it."""
    found: Census = {"parameters": [], "returns": [], "example": []}
    texts = [shown for family in shown_examples().values() for shown in family.values()]
    texts += generated().values()
    of_ops = {each.source for text in texts for each in _PARSE(text)}
    for name, value in entries():
        doc = inspect.getdoc(value) or ""
        if not parameters_of(value) <= described(doc):
            found["parameters"].append(name)
        if gives_a_result(value) and not _RESULT.search(doc):
            found["returns"].append(name)
        if not any(each.source in _RUN or each.source in of_ops for each in _PARSE(doc)):
            found["example"].append(name)
    return {kind: sorted(names) for kind, names in found.items()}


def generated() -> dict[str, str]:
    """Docstrings by the names of public functions and types that one text describes; a test runs their examples."""
    older = [name for name in dir(_deprecated) if "autocast" in name and hasattr(flambeau, name)]
    return {name: getattr(flambeau, name).__doc__ or "" for name in (*TENSOR_TYPES, *older)}


def entries() -> Iterator[tuple[str, Any]]:
    """Name and object of every callable that the site's reference has a page for, each object once."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        groups = importlib.import_module("_site.modules").GROUPS
        reference = importlib.import_module("_site.reference")
    finally:
        sys.path.remove(str(ROOT / "docs"))
    seen: set[int] = set()
    for module in (each for modules in groups.values() for each in modules):
        for name, value in reference.public_entries(module):
            if id(value) not in seen:
                seen.add(id(value))
                yield name, reference.documented(value)


def parameters_of(value: Any) -> set[str]:
    """The parameters that a user may give: an enumeration has none, nor has what Python cannot tell about."""
    if inspect.isclass(value) and (
        issubclass(value, Enum) or (value.__init__ is Module.__init__ and value is not Module)
    ):
        return set()
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return set()
    return {name for name in parameters if not name.startswith("_") and name != "self"}


def described(doc: str) -> set[str]:
    """The parameters that the section `Args:` has an entry for; one entry may be for several."""
    section = _ARGS.search(doc + "\n")
    if section is None:
        return set()
    return {name.strip("* ") for entry in _ENTRY.findall(section[1]) for name in entry.split(",")}


def gives_a_result(value: Any) -> bool:
    """Whether a call has a result to describe: that of a class is its instance, that of a module what it computes."""
    if inspect.isclass(value):
        return issubclass(value, Module) and value.forward is not Module.forward
    try:
        return inspect.signature(value).return_annotation not in _NO_RESULT
    except (TypeError, ValueError):
        return True


def listed() -> Census:
    """The callables known to lack something; the lists only become shorter."""
    known: Census = json.loads(GAPS.read_text(encoding="utf-8"))
    return known
