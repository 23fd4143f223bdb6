"""The schemas of PyTorch's operators: `schemas.txt.gz`, which `tools/schemas.py` writes, read on first use.

The file is compressed, since it would otherwise be the largest that programs read: 343 KB of an installation, not 40.
"""

from __future__ import annotations

import functools
import re
import zlib
from pathlib import Path

from .schema import FunctionSchema, parse

_FILE = Path(__file__).with_name("schemas.txt.gz")
_GZIP = 16 + zlib.MAX_WBITS
_TITLE = re.compile(r"^\[(.+)\]\n", re.MULTILINE)


@functools.cache
def _sections() -> dict[str, str]:
    """The parts of the file by their titles."""
    _, *parts = _TITLE.split(zlib.decompress(_FILE.read_bytes(), _GZIP).decode())
    return dict(zip(parts[::2], parts[1::2], strict=True))


@functools.cache
def _texts(section: str) -> dict[str, list[str]]:
    """The schemas of a section as text, by the names of operators."""
    found: dict[str, list[str]] = {}
    for line in _sections()[section].splitlines():
        name = line[: line.index("(")].partition(".")[0]
        found.setdefault(name, []).append(line)
    return found


@functools.cache
def schemas_of(space: str, name: str) -> dict[str, FunctionSchema]:
    """The schemas of an operator of `aten` or `prims` by its overloads, those that only TorchScript knows included."""
    parsed = []
    for section in _SECTIONS.get(space, ()):
        parsed += [parse(text, space) for text in _texts(section).get(name, ())]
    return {each.overload_name or "default": each for each in parsed}


_SECTIONS = {"aten": ("aten", "script"), "prims": ("prims",)}


@functools.cache
def operators_of(space: str) -> frozenset[str]:
    """The names of the operators of `aten` or `prims`, those that only TorchScript knows included."""
    return frozenset[str]().union(*(_texts(section) for section in _SECTIONS[space]))


@functools.cache
def dispatched(name: str) -> tuple[FunctionSchema, ...]:
    """The schemas of an operator of `aten` without those that only TorchScript knows."""
    return tuple([parse(text, "aten") for text in _texts("aten").get(name, ())])


@functools.cache
def written_in_python() -> frozenset[str]:
    """Operators whose namesakes among PyTorch's public functions are written in Python and take other arguments."""
    return frozenset(_sections()["written in Python"].split())
