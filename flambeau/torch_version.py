"""`TorchVersion`: a string that compares as versions do, without a package for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion"]

_VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_n>\d*))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*)|-(?P<post_i>\d+))?(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*$",
    re.IGNORECASE,
)
_PHASES = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}


def _key(text: str) -> tuple[Any, ...] | None:
    """What versions are ordered by; None for what is no version."""
    found = _VERSION.match(text.strip())
    if found is None:
        return None
    release = tuple(int(each) for each in found["release"].split("."))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    phase = (found["pre"] or "").lower()
    pre: tuple[Any, ...] = (_PHASES.get(phase, phase), int(found["pre_n"] or 0)) if phase else ("z",)
    if not phase and found["dev"] and not (found["post"] or found["post_i"]):
        pre = ("",)
    post = int(found["post_n"] or found["post_i"] or 0) if found["post"] or found["post_i"] else -1
    development = int(found["dev_n"] or 0) if found["dev"] else float("inf")
    local = (
        tuple((1, int(each)) if each.isdecimal() else (0, each.lower()) for each in re.split("[-_.]", found["local"]))
        if found["local"]
        else ()
    )
    return int(found["epoch"] or 0), release, pre, post, development, local


class TorchVersion(str):
    """A version: a string, compared with strings and tuples part by part.

    >>> from flambeau.torch_version import TorchVersion
    >>> TorchVersion("2.13.0+flambeau.0.2") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()

    def _other(self, inp: Any) -> tuple[Any, ...] | None:
        if isinstance(inp, str):
            return _key(inp)
        if isinstance(inp, Iterable):
            return _key(".".join(str(each) for each in inp))
        if hasattr(inp, "release"):  # the class of versions of the package `packaging`
            return _key(str(inp))
        raise ValueError(f"can't turn {inp} into a version")

    def __eq__(self, other: object) -> bool:
        ours, theirs = _key(self), self._other(other)
        return str(self) == other if ours is None or theirs is None else ours == theirs

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        ours, theirs = _key(self), self._other(other)
        if ours is None or theirs is None:
            return bool(str.__lt__(self, str(other)))
        return bool(ours < theirs)

    def __le__(self, other: Any) -> bool:
        return bool(self < other or self == other)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __hash__(self) -> int:
        return str.__hash__(self)

    @property
    def major(self) -> int:
        """The first number."""
        return self.release[0]

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers."""
        found = _VERSION.match(self)
        return tuple(int(each) for each in found["release"].split(".")) if found else ()
