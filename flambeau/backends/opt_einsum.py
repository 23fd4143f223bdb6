"""The package that orders the products of `einsum`, which Flambeau orders by itself."""

from __future__ import annotations

from ._flags import setters
from ._modules import settings_class

enabled = False
strategy: str | None = None
set_flags, flags = setters(globals(), enabled=None, strategy=None)


def is_available() -> bool:
    """Whether the package is used."""
    return False


def get_opt_einsum() -> None:
    """The package: none."""


settings_class("OptEinsumModule", __name__, "enabled strategy")
