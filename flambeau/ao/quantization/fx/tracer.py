"""Tracing for quantization: modules that are quantized as one stay one."""

from __future__ import annotations

from typing import Any

from ....fx._symbolic_trace import Tracer
from ....nn import Sequential
from ....nn.modules.module import Module
from ...nn.intrinsic.modules.fused import _FusedModule

__all__ = ["QuantizationTracer"]


class QuantizationTracer(Tracer):
    """A tracer that does not look into the modules of some names and classes."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[type[Any]]) -> None:
        super().__init__()
        self.skipped_module_names = skipped_module_names
        self.skipped_module_classes = skipped_module_classes
        self.record_stack_traces = True

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Layers, fused modules and what is skipped."""
        ours = m.__module__.startswith(("torch.nn", "torch.ao.nn", "flambeau.nn", "flambeau.ao.nn"))
        return (
            (ours and not isinstance(m, Sequential))
            or isinstance(m, _FusedModule)
            or module_qualified_name in self.skipped_module_names
            or type(m) in self.skipped_module_classes
        )
