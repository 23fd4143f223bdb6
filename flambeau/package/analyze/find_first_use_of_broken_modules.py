"""Why modules are in an archive that they cannot be in."""

from __future__ import annotations

from typing import Any


def find_first_use_of_broken_modules(exc: Any) -> dict[str, list[str]]:
    """For each module that could not be packaged, the shortest way by which it is needed."""
    from ..package_exporter import PackagingError

    if not isinstance(exc, PackagingError):
        raise TypeError(f"exc must be a PackagingError, not {type(exc).__name__}")
    return {name: exc.dependencies.first_path(name) for name in exc.broken}
