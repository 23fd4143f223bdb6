"""Kernels for attention that other packages bring: by name what switches them on."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any

_logger = logging.getLogger(__name__)


def _bring_flash_attention() -> Any:
    """The package that PyTorch knows kernels of; it is for PyTorch's own tensors on GPUs."""
    importlib.import_module("flash_attn")
    raise RuntimeError("flash_attn registers its kernels with PyTorch's C++ dispatcher, which does not exist here")


_IMPLS: dict[str, Callable[..., Any]] = {"FA3": _bring_flash_attention, "FA4": _bring_flash_attention}
_ACTIVE: list[tuple[str, Any]] = []
"""The one in use, and what its function gave to switch it off again."""


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Give a way of computing attention a name; `register_fn` switches it on, and may return what has `remove()`."""
    _IMPLS[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Switch on a way of computing attention that has been registered."""
    if impl not in _IMPLS:
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: {list(_IMPLS)}")
    if current_flash_attention_impl() == impl:
        return
    handle = _IMPLS[impl]()
    restore_flash_attention_impl(_raise_warn=False)
    _ACTIVE.append((impl, handle))


def list_flash_attention_impls() -> list[str]:
    """The names."""
    return sorted(_IMPLS)


def current_flash_attention_impl() -> str | None:
    """The one in use; None is this package's own."""
    return _ACTIVE[-1][0] if _ACTIVE else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Switch it off again."""
    if not _ACTIVE:
        if _raise_warn:
            _logger.warning("there is no other way of computing attention to be switched off")
        return
    _, handle = _ACTIVE.pop()
    if handle is not None:
        handle.remove()
