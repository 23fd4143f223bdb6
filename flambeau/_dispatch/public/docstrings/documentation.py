"""Docstrings of public functions: their own sentences, and what their signatures and shared parameters say.

A function's own docstring says what it computes, and explains in a section `Args:` only what is its own. The module
`parameter_docs` explains once what many functions share; here that is put in place, with types and defaults, and the
example that `examples` finds. Functions are made when a program first uses them, so this must be quick: lines are kept,
and most docstrings are one sentence, which needs no parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from inspect import Parameter, cleandoc, signature
from textwrap import indent
from typing import Any

from ..namespaces import written
from .differences import differences
from .examples import example_of
from .parameter_docs import EXPLANATIONS
from .raised_docs import raised
from .return_docs import returned

_SECTION = re.compile(r"^(Args|Returns|Raises|Shape|Note):$", re.MULTILINE)
_ORDER = ("Shape", "Args", "Returns", "Raises", "Note", "Example")
_OWN_PARAMETER = re.compile(r"^    \*{0,2}(\w+)\b", re.MULTILINE)
_SHOWN_TYPES = {
    "Any": "",
    "Dim": "int or str",
    "Dims": "int or tuple of ints, optional",
    "Operand": "Tensor or Number",
    "DType": "dtype",
    "list[Tensor]": "sequence of Tensors",
}
_HIDDEN = frozenset(("_stacklevel", "_random_samples"))
_WITH_OWN_MEANINGS = frozenset(key.partition(".")[0] for key in EXPLANATIONS if "." in key)
_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def completed(
    doc: str | None, name: str, parameters: Iterable[Parameter], returns: str = "Tensor", original: str = ""
) -> str:
    """The docstring of the public function `name`: every parameter and the result described, and an example.

    `doc` is what stands in the source; `returns` is the annotation of the result; `original` is the function of which
    this is another name or the in-place form.
    """
    doc = doc or ""
    parameters = list(parameters)
    original = (original or name).removesuffix("_")
    sections = _sections(cleandoc(doc)) if "\n" in doc else {"": doc}
    own = sections.get("Args", "")
    described = {*_HIDDEN, *(_OWN_PARAMETER.findall(own) if own else ())}
    function = name.rpartition(".")[2].rstrip("_")
    if function not in _WITH_OWN_MEANINGS:
        function = ""
    lines = [
        _line(each.name, each.annotation, _shown_default(each.default), each.kind, function)
        for each in parameters
        if each.name not in described
    ]
    if own:
        lines.insert(0, own)
    sections["Args"] = "\n".join(lines)
    if "Returns" not in sections:
        sections["Returns"] = f"    {returned(name, original, {each.name for each in parameters}, returns)}"
    if "Raises" not in sections and returns != "NoReturn":
        sections["Raises"] = "\n".join([f"    {each}" for each in raised(name, original)])
    notes = [sections["Note"]] if "Note" in sections else []
    sections["Note"] = "\n".join([*notes, *(f"    {each}" for each in differences(name, original))])
    sections["Example"] = indent(example_of(name, original), "    ")
    parts = [sections[""], *(f"{each}:\n{sections[each]}" for each in _ORDER if sections.get(each))]
    return "\n\n".join(parts)


def complete(function: Callable[..., Any], name: str) -> None:
    """Complete the docstring of a public function that is published as it stands."""
    own = signature(function)
    written(function).__doc__ = completed(function.__doc__, name, own.parameters.values(), str(own.return_annotation))


_OPERANDS = (
    Parameter("input", Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor"),
    Parameter("other", Parameter.POSITIONAL_OR_KEYWORD, annotation="Operand"),
)
_OUT = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")


def of_elementwise(doc: str, name: str, operands: int, takes_out: bool, original: str) -> str:
    """The docstring of an elementwise function of one or two operands."""
    parameters = (*_OPERANDS[:operands], *((_OUT,) if takes_out else ()))
    return completed(doc, name, parameters, _ELEMENTWISE[operands], original)


_ELEMENTWISE = ("", "Tensor: of the shape of `input`.", "Tensor: of the shape to which the operands are broadcast.")


def _sections(doc: str) -> dict[str, str]:
    """The parts of a docstring by their titles: "" is what stands first."""
    first, *rest = _SECTION.split(doc)
    return {"": first.strip(), **{title: text.strip("\n") for title, text in zip(rest[::2], rest[1::2], strict=True)}}


def _shown_default(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)


@cache
def _line(name: str, annotation: Any, default: str, kind: Any, function: str) -> str:
    """What a docstring says of one parameter: its name, its type, what it means, its default."""
    annotated = _type_of(annotation)
    shown, _, meaning = explanation(name, function, annotated).partition(": ")
    if not meaning:
        shown, meaning = "", shown
    if kind in _STARS:
        annotated = shown = ""
    shown_type = (shown or annotated) if default == "None" else (annotated or shown)
    sentence = f" {meaning}." if meaning else ""
    tail = "" if default == "None" or default.startswith("<") else f" Default: `{default}`."  # `<...>` tells nothing
    return f"    {_STARS.get(kind, '')}{name}{f' ({shown_type})' if shown_type else ''}:{sentence}{tail}".rstrip(":")


def explanation(parameter: str, function: str, annotated: str = "") -> str:
    """What `parameter_docs` says of a parameter: of this function's alone, of those of its type, or of all."""
    keys = (f"{function}.{parameter}", f"{parameter} ({annotated})", parameter)
    return next((EXPLANATIONS[key] for key in keys if key in EXPLANATIONS), "")


def _type_of(annotation: Any) -> str:
    """An annotation in the words of the documentation."""
    if not isinstance(annotation, str):
        return "" if annotation is Parameter.empty else getattr(annotation, "__name__", "")
    kinds = annotation.split(" | ")
    shown = " or ".join(filter(None, (_SHOWN_TYPES.get(each, each) for each in kinds if each != "None")))
    return f"{shown}, optional" if shown and "None" in kinds else shown
