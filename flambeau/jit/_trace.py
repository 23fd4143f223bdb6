"""Tracing: what is traced stays the Python that it is."""

from __future__ import annotations

from typing import Any, TypeVar

Traced = TypeVar("Traced")


def is_tracing() -> bool:
    """Whether a call is being recorded: never."""
    return False


def trace(
    func: Traced,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Traced:
    """The function or module itself, as in PyTorch with `PYTORCH_JIT=0`."""
    return func


def trace_module(
    mod: Traced,
    inputs: Any,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Traced:
    """The module itself."""
    return mod


def script_if_tracing(fn: Traced) -> Traced:
    """The function itself: it would be compiled only while a trace is recorded."""
    return fn
