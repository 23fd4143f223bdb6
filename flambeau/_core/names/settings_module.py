"""Modules that are nothing but settings: PyTorch's programs set them, and they keep what they are given."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


def settings(module: str, **defaults: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """For a module of settings: its `__getattr__` and `__dir__`. It gets `patch`, as PyTorch's such modules have."""
    values = vars(sys.modules[module])
    values.update(defaults)

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
