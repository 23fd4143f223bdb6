"""Python's own compiler, and what it has made kept on disk: the checks of a large model are thousands of lines."""

from __future__ import annotations

import importlib.util
import marshal
from types import CodeType

from .._codegen.machine import cache

_LEAST = 20_000
"""Shorter text is compiled in no time."""


def compiled_source(text: str, file: str) -> CodeType:
    """The code of a text, which is said to be a file of that name."""
    if len(text) < _LEAST:
        return compile(text, file, "exec")
    name = cache.digest(("source", importlib.util.MAGIC_NUMBER.hex(), file, text))
    found = cache.load(name)
    if found is not None:
        kept: CodeType = marshal.loads(found)
        return kept
    code = compile(text, file, "exec")
    cache.store(name, marshal.dumps(code))
    return code
