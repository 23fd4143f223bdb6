"""Elementwise functions that a program writes in CUDA C++ itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.device import usable_device
from ._missing import NEEDS_CUDA, is_present

__all__: list[str] = []


def _create_jit_fn(code_string: str, **kwargs: Any) -> Callable[..., Any]:
    """A function of tensors whose elements are computed by the function template in `code_string`."""
    return _create_multi_output_jit_fn(code_string, 1, **kwargs)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> Callable[..., Any]:
    """Make a function of a CUDA template with several results, which are its last arguments, by reference."""
    if not is_present():
        raise RuntimeError(NEEDS_CUDA.format(name="jiterator"))
    usable_device("cuda")
    from ._jiterator import Jitted

    return Jitted(code_string, num_outputs, kwargs)
