"""Modules of settings with `set_flags` and `flags`, as several of `torch.backends` are."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ._modules import unfrozen


def setters(module: dict[str, Any], **defaults: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions `set_flags` and `flags` of a module with these settings.

    None leaves a setting as it is; `flags` gives those that it is not told the defaults here.
    """
    names = tuple(defaults)

    def set_flags(*values: Any, **named: Any) -> tuple[Any, ...]:
        """Set the settings, in their order or by name; gives what they were."""
        wanted = dict(zip(names, values, strict=False))
        wanted.update((name.removeprefix("_"), value) for name, value in named.items())
        unknown = set(wanted) - set(names)
        if unknown:
            raise TypeError(f"set_flags() got an unexpected keyword argument '{min(unknown)}'")
        before = tuple(module[name] for name in names)
        for name, value in wanted.items():
            if value is not None:
                _set(module, name, value)
        return before

    @contextlib.contextmanager
    def flags(*values: Any, **named: Any) -> Iterator[None]:
        """Set options inside a `with` block; what was set before returns afterwards."""
        before = set_flags(**{**defaults, **dict(zip(names, values, strict=False)), **named})
        try:
            yield
        finally:
            for name, value in zip(names, before, strict=True):
                _set(module, name, value)

    return set_flags, flags


def _set(module: dict[str, Any], name: str, value: Any) -> None:
    with unfrozen():
        setattr(sys.modules[module["__name__"]], name, value)
