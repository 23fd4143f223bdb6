"""Classes of a library's compiled part, under the names of `torch.classes`: there are none."""

from __future__ import annotations

from typing import Any

__path__: list[str] = []
"""Libraries look at it; nothing can be imported from here."""


def load_library(path: str) -> None:
    """Load the compiled part of a library: there is no C++ here that it could be linked with."""
    raise OSError(f"Could not load this library: {path}: Flambeau has no C++ part that it could be linked with")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise RuntimeError(
        f"Tried to instantiate class '{name}', but it does not exist: Flambeau has no classes of a library's "
        "compiled part"
    )
