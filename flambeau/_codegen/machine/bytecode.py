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

_LEAST = 300
"""Characters. Shorter text is compiled in no time."""


def compiled_sources(sources: Sequence[tuple[str, str]]) -> Sequence[CodeType]:
    """The code of texts, each behind the name of the file that it is said to be; they are kept together."""
    if sum([len(text) for _, text in sources]) < _LEAST:
        return _compiled(sources)
    name = cache.digest(("sources", importlib.util.MAGIC_NUMBER.hex(), *[part for each in sources for part in each]))
    found = cache.load(name)
    if found is not None:
        kept: tuple[CodeType, ...] = marshal.loads(found)
        return kept
    codes = _compiled(sources)
    cache.store(name, marshal.dumps(codes))
    return codes


def _compiled(sources: Sequence[tuple[str, str]]) -> tuple[CodeType, ...]:
    return tuple([compile(text, file, "exec") for file, text in sources])
