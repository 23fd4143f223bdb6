"""Where a model's tensors become quantized, and floats again: modules that mark the places."""

from __future__ import annotations

from typing import Any

from ...nn.modules.module import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(Module):
    """Passes tensors through, with the settings of a place."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """The tensor itself."""
        return x


class QuantStub(_Stub):
    """Passes tensors through, watched; `convert` puts a module in its place that quantizes them."""


class DeQuantStub(_Stub):
    """Passes tensors through; `convert` puts a module in its place that turns them into floats."""


class QuantWrapper(Module):
    """A module between the two."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """What the module makes of the quantized tensor, as floats."""
        return self.dequant(self.module(self.quant(X)))
