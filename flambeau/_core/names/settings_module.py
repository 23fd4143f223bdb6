"""Modules that are nothing but settings: PyTorch's programs set them, and they keep what they are given.

`settings.json.gz`, which `tools/settings.py` writes, has the settings of each module with their first values.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def settings(module: str, name: str, **more: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """For a module of settings, known by `name`: its `__getattr__` and `__dir__`. It gets `patch`, as in PyTorch.

    `more`: settings whose values begin as objects.
    """
    values = vars(sys.modules[module])
    known = json.loads(gzip.decompress((Path(__file__).parent / "settings.json.gz").read_bytes()))[name]
    for each, value in (known | more).items():
        group, _, own = each.rpartition(".")
        place = vars(values.setdefault(group, SimpleNamespace())) if group else values
        place[own] = value

    @contextlib.contextmanager
    def patch(name: str | dict[str, Any] | None = None, value: Any = None, **changes: Any) -> Iterator[None]:
        """Set options inside a block or a decorated function; what was set before returns afterwards."""
        wanted = {**(name if isinstance(name, dict) else {} if name is None else {name: value}), **changes}
        before = {each: values[each] for each in wanted}
        values.update(wanted)
        try:
            yield
        finally:
            values.update(before)

    values["patch"] = patch

    def get(name: str) -> Any:
        raise AttributeError(f"{module} has no setting {name!r}")

    return get, lambda: sorted(values)
