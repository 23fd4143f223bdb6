"""What layers share that have a batch norm behind them in training, and become one with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class WithNorm:
    """A layer with a weight and a batch norm, `bn`, which may be frozen; for classes of modules to inherit from."""

    bn: Any
    training: bool
    weight: Any
    bias: Any
    freeze_bn: bool

    def update_bn_stats(self) -> Any:
        """Let the norm follow the batches."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """Let the norm keep its statistics."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Any:
        """Set the mode; a frozen norm keeps its own."""
        self.training = mode
        if not self.freeze_bn:
            module: Any = self
            for each in module.children():
                each.train(mode)
        return self

    def _take_over(self, layer: Any, norm: Any) -> Any:
        """Have the parameters of a layer, and parameters and statistics of a batch norm; returns the module."""
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(norm, name))
        return self

    def _merged(self, fuse: Callable[..., Any]) -> Any:
        """The weight and the bias of one layer that is both."""
        bn = self.bn
        return fuse(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
