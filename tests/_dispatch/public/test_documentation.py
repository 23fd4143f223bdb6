"""Docstrings of public functions: every parameter and result is described, shared ones from one place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import flambeau
from flambeau._dispatch.public.docstrings import documentation
from flambeau._dispatch.public.docstrings.differences import OF_FUNCTIONS, OF_NAMES
from flambeau._dispatch.public.docstrings.parameter_docs import EXPLANATIONS
from flambeau._dispatch.public.docstrings.return_docs import CHANGED, REDUCED, SENTENCES
from flambeau._dispatch.public.registry import FUNCTIONS, METHODS, load_all, resolved

_PRIVATE_SPACES = ("ops.aten",)


def public_functions() -> Iterator[tuple[str, Any]]:
    """Every public function and method of the ops, once each."""
    load_all()
    seen: set[int] = set()
    for space, functions in [*FUNCTIONS.items(), ("Tensor", METHODS)]:
        for name, value in functions.items():
            function = resolved(value)
            if space in _PRIVATE_SPACES or name.startswith("_") or not isinstance(function, (FunctionType, MethodType)):
                continue
            if id(function) not in seen:
                seen.add(id(function))
                yield f"{space}.{name}".lstrip("."), function


def test_every_parameter_and_result_is_described() -> None:
    missing = []
    for name, function in public_functions():
        doc = function.__doc__ or ""
        returns = re.search(r"^Returns:\n    (.*)$", doc, re.MULTILINE)
        if returns is None or (": " not in returns[1] and returns[1] not in ("None", "NoReturn")):
            missing.append(f"{name} -> ?")
        if " object at 0x" in doc:
            missing.append(f"{name}: an address")
        for parameter in inspect.signature(function).parameters:
            described = re.search(rf"^    \*{{0,2}}{parameter}\b( \(.*?\))?: \S", doc, re.MULTILINE)
            if described is None and parameter not in documentation._HIDDEN:
                missing.append(f"{name}({parameter})")
    assert missing == []


def test_every_sentence_about_results_has_a_user() -> None:
    docs = "\n".join(function.__doc__ or "" for _, function in public_functions())
    assert [each for each in (*SENTENCES, REDUCED, CHANGED) if f"{each}.\n" not in docs] == []


def test_differences_from_pytorch_are_shown() -> None:
    docs = {name: function.__doc__ or "" for name, function in public_functions()}
    for sentence, names in [*OF_FUNCTIONS.items(), *OF_NAMES.items()]:
        shown = f"\n    Differs from PyTorch: {sentence}."
        assert [name for name in names.split() if shown not in docs[name]] == []
    assert "Differs from PyTorch" in docs["special.erf"]
    assert "Differs from PyTorch" in docs["erf_"]
    assert "Differs from PyTorch" not in docs["sin"]


def test_every_shared_explanation_has_a_user() -> None:
    used = set()
    for name, function in public_functions():
        plain = name.rpartition(".")[2].rstrip("_")
        for parameter in inspect.signature(function).parameters.values():
            annotated = documentation._type_of(parameter.annotation)
            keys = (f"{plain}.{parameter.name}", f"{parameter.name} ({annotated})", parameter.name)
            used.add(next((each for each in keys if each in EXPLANATIONS), ""))
    assert sorted(set(EXPLANATIONS) - used) == []


def test_a_docstring_keeps_its_own_sections_and_order() -> None:
    def scaled(input: str, factor: float = 2.0, *, out: str | None = None) -> str:
        """`input` times `factor`.

        Args:
            factor (float): what to multiply by.

        Raises:
            RuntimeError: never.
        """
        return input

    text = documentation.completed(scaled.__doc__, "scaled", inspect.signature(scaled).parameters.values(), "str")
    titles = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert titles == ["Args", "Returns", "Raises"]
    assert text.count("factor (float): what to multiply by.") == 1
    assert "out (" in text


def test_defaults_and_types_are_shown() -> None:
    assert "groups (int): into how many groups" in (flambeau.conv2d.__doc__ or "")
    assert "Default: `1`." in (flambeau.conv2d.__doc__ or "")
    assert "bias (Tensor, optional):" in (flambeau.conv2d.__doc__ or "")
    assert "In-place form of `exp`." in (flambeau.Tensor.exp_.__doc__ or "")
