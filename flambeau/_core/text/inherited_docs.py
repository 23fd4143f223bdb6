"""Docstrings that take sections over from another class or function, as `BatchNorm2d` does from `BatchNorm1d`.

The source of `BatchNorm2d` says what is its own; `help(BatchNorm2d)` shows the rest too, from the one place that
explains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc, getdoc, signature
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

_SECTION = re.compile(r"^(Args|Shape|Returns|Raises|Attributes|Example):\n", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}\*{0,2}(\w+)", re.MULTILINE)


class _ClassDoc:
    """The docstring of a class, completed whenever somebody reads it: few programs do."""

    def __init__(self, model: object, own: str) -> None:
        self.model = model
        self.own = own

    def __get__(self, instance: object, owner: type) -> str:
        return completed(self.own, self.model, owner)


def documented_like(model: object) -> Callable[[Documented], Documented]:
    """A decorator that completes a docstring by what it does not say itself and the docstring of `model` does.

    The first paragraph and the example are always its own. The other paragraphs before the first section, and each
    section, come from `model` where the docstring has none. Under `Args:` it explains the parameters that differ; the
    explanations of its other parameters come from `model`.
    """

    def complete(target: Documented) -> Documented:
        own = target.__doc__
        if own is None:  # Python runs with -OO
            return target
        if isinstance(target, type):
            type.__setattr__(target, "__doc__", _ClassDoc(model, own))
        else:
            target.__doc__ = completed(own, model, target)
        return target

    return complete


def completed(own: str, model: object, target: Callable[..., Any]) -> str:
    """The docstring `own` of `target`, with the paragraphs, sections and parameters that it lacks from `model`'s."""
    theirs = _sections(getdoc(model) or "")
    ours = _sections(cleandoc(own))
    theirs.pop("Example", None)
    summary, _, _ = ours[""].partition("\n\n")
    _, _, explanation = theirs[""].partition("\n\n")
    if explanation and ours[""] == summary:
        ours[""] = f"{summary}\n\n{explanation}"
    entries = {**_entries(theirs.get("Args", "")), **_entries(ours.get("Args", ""))}
    named = [name for name in signature(target).parameters if name in entries]
    joined = {**theirs, **ours, "Args": "\n".join(entries[name] for name in named)}
    titles = [title for title in (*theirs, *(title for title in ours if title not in theirs)) if joined[title]]
    return "\n\n".join(f"{title}:\n{joined[title]}" if title else joined[""] for title in titles)


def _sections(doc: str) -> dict[str, str]:
    """The text under each title; "" is what stands before the first."""
    first, *rest = _SECTION.split(doc)
    return {"": first.strip(), **{title: text.strip("\n") for title, text in zip(rest[::2], rest[1::2], strict=True)}}


def _entries(section: str) -> dict[str, str]:
    """The explanations of a section `Args:`, by the first name that each one explains."""
    found = list(_ENTRY.finditer(section))
    ends = [*(match.start() for match in found[1:]), None]
    return {match[1]: section[match.start() : end].rstrip("\n") for match, end in zip(found, ends, strict=False)}
