"""Python's own compiler, and what it has made kept on disk.

The checks of a large model are thousands of lines. The functions that record ops, and those that look at arguments, are
some dozens each, and a first step needs dozens of them: to read one takes a tenth of the time to compile it.
"""

from __future__ import annotations

import importlib.util
import marshal
from collections.abc import Sequence
from types import CodeType

from . import cache

_LEAST = 1200
"""Characters. Shorter text is compiled as soon as it is read."""


def compiled_sources(sources: Sequence[tuple[str, str]]) -> Sequence[CodeType]:
    """The code of texts, each behind the name of the file that it is said to be; they are kept together."""
    if sum([len(text) for _, text in sources]) < _LEAST:
        return _compiled(sources)
    name = cache.digest(("sources", importlib.util.MAGIC_NUMBER.hex(), *[part for each in sources for part in each]))

    def codes_in(content: bytes) -> tuple[CodeType, ...]:
        codes: tuple[CodeType, ...] = marshal.loads(content)
        if [type(each) for each in codes] != [CodeType] * len(sources):
            raise TypeError("these are not the codes of the sources")
        return codes

    return cache.made_once(name, lambda: marshal.dumps(_compiled(sources)), codes_in)


def _compiled(sources: Sequence[tuple[str, str]]) -> tuple[CodeType, ...]:
    return tuple([compile(text, file, "exec") for file, text in sources])
