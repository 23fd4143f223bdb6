"""Patterns of dotted names: `*` stands for what is between two dots, `**` for any number of parts."""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """Names that fit one of some patterns, and none of others.

    >>> from flambeau.package import GlobGroup
    >>> GlobGroup("net.**", exclude="net.test").matches("net.layers.conv")
    True

    Args:
        include (GlobPattern): one pattern, or several; `*` stands for a part of a name, `**` for several parts.
        exclude (GlobPattern): patterns of names that are left out. Default: `()`.
        separator (str): what separates the parts. Default: `"."`.
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = ".") -> None:
        self._shown = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include, self.exclude = (self._compiled(each) for each in (include, exclude))

    def _compiled(self, patterns: GlobPattern) -> list[re.Pattern[str]]:
        listed = [patterns] if isinstance(patterns, str) else list(patterns)
        return [re.compile(_expression(each, self.separator)) for each in listed]

    def matches(self, candidate: str) -> bool:
        """Whether a name fits."""
        candidate = self.separator + candidate
        return any(each.fullmatch(candidate) for each in self.include) and not any(
            each.fullmatch(candidate) for each in self.exclude
        )

    def __str__(self) -> str:
        return self._shown

    __repr__ = __str__


def _expression(pattern: str, separator: str) -> str:
    mark = re.escape(separator)
    parts = []
    for part in pattern.split(separator):
        if "**" in part:
            if part != "**":
                raise ValueError("** can only appear as an entire path segment")
            parts.append(f"({mark}[^{mark}]+)*")
        else:
            parts.append(mark + f"[^{mark}]*".join(map(re.escape, part.split("*"))))
    return "".join(parts)
