"""Packages that PyTorch has moved: under the older name stands the same package, with all that is below it."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from .names_only import below


def stand_for(older: str, newer: str) -> None:
    """Let the names of a package and of the modules below it lead to those of another."""
    package = importlib.import_module(newer)
    with_files = [each.name for each in pkgutil.walk_packages(package.__path__, f"{newer}.")]
    for name in (*with_files, *below(newer)):
        sys.modules[older + name[len(newer) :]] = importlib.import_module(name)
    sys.modules[older] = package
