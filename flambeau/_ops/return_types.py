"""Named results: `torch.return_types.max(values=..., indices=...)`."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

RETURN_TYPES: dict[str, type] = {}


def return_type(name: str, fields: tuple[str, ...]) -> Any:
    """The tuple class of results called `name`; one class for each name."""
    found = RETURN_TYPES.get(name)
    if found is None:
        base: Any = namedtuple(name, fields)  # noqa: PYI024  (its fields are data)
        found = type(name, (base,), {"__slots__": (), "__repr__": _representation, "__module__": "flambeau.return_types"})
        RETURN_TYPES[name] = found
    return found


def _representation(result: Any) -> str:
    parts = ",\n".join(f"{field}={value!r}" for field, value in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{parts})"
