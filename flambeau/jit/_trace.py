"""Tracing: what is traced stays the Python that it is."""

from __future__ import annotations

from typing import Any, TypeVar

Traced = TypeVar("Traced")


def is_tracing() -> bool:
    """Whether a call is being recorded: never."""
    return False


def trace(func: Traced, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Traced:
    """The function or module itself, as in PyTorch with `PYTORCH_JIT=0`."""
    return func


def trace_module(mod: Traced, inputs: Any, *args: Any, **kwargs: Any) -> Traced:
    """The module itself."""
    return mod


def script_if_tracing(fn: Traced) -> Traced:
    """The function itself: it would be compiled only while a trace is recorded."""
    return fn
