"""Names of modules from archives: `<torch_package_0>.net` cannot be mistaken for the environment's `net`."""

from __future__ import annotations

import itertools
import re

_numbers = itertools.count()
_MANGLED = re.compile(r"<torch_package_\d+>")


def new_prefix() -> str:
    """What the names of an archive's modules begin with."""
    return f"<torch_package_{next(_numbers)}>"


def is_mangled(name: str) -> bool:
    """Whether a name is that of a module from an archive."""
    return _MANGLED.match(name) is not None


def demangle(name: str) -> str:
    """The name without what tells the archive."""
    return name.partition(".")[2] if is_mangled(name) else name


def prefix_of(name: str) -> str:
    """What tells the archive."""
    return name.partition(".")[0]
