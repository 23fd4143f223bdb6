"""The backends that `compile` knows by name, and which of them it takes where it is told none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._core.slots import SLOTS
from ._errors import InvalidBackend

Backend = Callable[..., Callable[..., Any]]

OWN = ("inductor", "eager", "verify")
"""Those that need no function: Flambeau's own compiler under PyTorch's name for its own, no compiler, and both."""


class _Registered(NamedTuple):
    backend: Backend | None
    tags: tuple[str, ...]


_BY_NAME: dict[str, _Registered] = {
    "inductor": _Registered(None, ()),
    "eager": _Registered(None, ("debug",)),
    "verify": _Registered(None, ("debug",)),
    "aot_eager": _Registered(lambda graph, inputs: SLOTS.aot_eager(graph, inputs), ("debug",)),
}
_DEFAULT: list[str | Backend] = ["inductor"]


def register(backend: Backend, name: str, tags: Sequence[str]) -> None:
    """Let `compile` know a backend by a name, which no other one has."""
    if name in _BY_NAME:
        raise AssertionError(f"duplicate name: {name}")
    _BY_NAME[name] = _Registered(backend, tuple(tags))


def names(exclude_tags: Sequence[str] | None) -> list[str]:
    """The names of the backends that have none of the tags."""
    left_out = set(exclude_tags or ())
    return sorted([name for name, each in _BY_NAME.items() if left_out.isdisjoint(each.tags)])


def default() -> str | Backend:
    """What `compile` takes unless it is told."""
    return _DEFAULT[0]


def set_default(backend: str | Backend) -> None:
    """Choose what `compile` takes unless it is told."""
    resolved(backend)
    _DEFAULT[0] = backend


def resolved(backend: str | Backend | None) -> str | Backend:
    """One of `OWN`, or the function behind a name."""
    found = default() if backend is None else backend
    if callable(found):
        return found
    known = _BY_NAME.get(found) if isinstance(found, str) else None
    if known is None:
        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    return found if known.backend is None else known.backend
