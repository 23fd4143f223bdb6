"""Named results: `torch.return_types.max(values=..., indices=...)`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from typing import Any

RETURN_TYPES: dict[str, type] = {}
"""Every class of named results by its name."""


def return_type(name: str, fields: tuple[str, ...]) -> Any:
    """The tuple class of results called `name`; one class for each name."""
    found = RETURN_TYPES.get(name)
    if found is None:
        base: Any = namedtuple(name, fields)  # type: ignore[misc]  # the name is known only here
        body = {
            "__slots__": (),
            "__new__": _made_of,
            "__repr__": _representation,
            "__module__": "flambeau.return_types",
            "n_fields": len(fields),
            "n_sequence_fields": len(fields),
            "n_unnamed_fields": 0,
        }
        found = RETURN_TYPES[name] = type(name, (base,), body)
    return found


def _made_of(cls: Any, *values: Any) -> Any:
    """A result of one sequence, as PyTorch makes it, or of single values, as those make it who see `_fields`."""
    parts = tuple(values[0]) if len(values) == 1 else values
    if len(parts) != cls.n_fields:
        raise TypeError(f"{cls.__name__}() takes a {cls.n_fields}-sequence ({len(parts)}-sequence given)")
    return tuple.__new__(cls, parts)


def named(kind: Any, values: Iterable[Any]) -> Any:
    """A result of class `kind`; quicker than calling the class, which matters for tiny tensors."""
    return tuple.__new__(kind, values)


def _representation(result: Any) -> str:
    parts = ",\n".join(f"{field}={value!r}" for field, value in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{parts})"
