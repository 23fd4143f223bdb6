"""Patterns that programs have added to those of the backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..fake_quantize import FixedQParamsFakeQuantize
from ..utils import Pattern
from .quantize_handler import QuantizeHandler

__all__ = [
    "get_default_fusion_patterns", "get_default_output_activation_post_process_map", "get_default_quant_patterns",
]  # fmt: skip

_FUSION_PATTERNS: dict[Pattern, Any] = {}
_QUANT_PATTERNS: dict[Pattern, type[QuantizeHandler]] = {}
_OUTPUT_FAKE_QUANTIZE: dict[Pattern, Any] = {}
_OUTPUT_OBSERVER: dict[Pattern, Any] = {}


def _register_fusion_pattern(pattern: Pattern) -> Callable[[Any], Any]:
    """Add a handler that fuses a pattern."""

    def register(handler: Any) -> Any:
        _FUSION_PATTERNS[pattern] = handler
        return handler

    return register


def _register_quant_pattern(pattern: Pattern, fixed_qparams_observer: Any = None) -> Callable[[Any], Any]:
    """Add a handler of a pattern, and an observer if its result has a known range."""

    def register(handler: Any) -> Any:
        _QUANT_PATTERNS[pattern] = handler
        if fixed_qparams_observer is not None:
            _OUTPUT_FAKE_QUANTIZE[pattern] = FixedQParamsFakeQuantize.with_args(observer=fixed_qparams_observer)
            _OUTPUT_OBSERVER[pattern] = fixed_qparams_observer
        return handler

    return register


def get_default_fusion_patterns() -> dict[Pattern, Any]:
    """The patterns that were added for fusing."""
    return dict(_FUSION_PATTERNS)


def get_default_quant_patterns() -> dict[Pattern, type[QuantizeHandler]]:
    """The patterns that were added for quantizing."""
    return dict(_QUANT_PATTERNS)


def get_default_output_activation_post_process_map(is_training: bool) -> dict[Pattern, Any]:
    """The observers of results of a known range."""
    return dict(_OUTPUT_FAKE_QUANTIZE if is_training else _OUTPUT_OBSERVER)
