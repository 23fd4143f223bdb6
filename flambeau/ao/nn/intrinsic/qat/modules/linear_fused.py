"""A linear layer and a batch norm, whose weight is rounded in training."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ...modules import fused
from ._norm import WithNorm

__all__ = ["LinearBn1d"]


class LinearBn1d(WithNorm, nn.Linear):
    """A linear layer and a batch norm, `bn`."""

    _FLOAT_MODULE: Any = fused.LinearBn1d

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, False)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn: Any = nn.BatchNorm1d(out_features, eps, momentum, True, True)
        own: Any = self
        own.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        nn.init.uniform_(self.bn.weight)  # as PyTorch draws them: what follows draws the same numbers
        self.weight_fake_quant = qconfig.weight()
        self.bn.training = self.training and not freeze_bn

    def forward(self, input: Any) -> Any:
        """The norm of the linear map by the weight that is rounded as scaled by the norm."""
        factor = self.bn.weight / torch.sqrt(self.bn.running_var + self.bn.eps)
        rounded = self.weight_fake_quant(self.weight * factor.reshape(-1, 1))
        result = F.linear(input, rounded, torch.zeros(self.out_features)) / factor
        return self.bn(result if self.bias is None else result + self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A layer of this class with the parameters of a linear layer and a batch norm in a row."""
        if type(mod) is not fused.LinearBn1d:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {fused.LinearBn1d.__name__}")
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid config")
        layer, norm = mod[0], mod[1]
        made = cls(
            layer.in_features, layer.out_features, layer.bias is not None, norm.eps, norm.momentum, qconfig=mod.qconfig
        )
        return made._take_over(layer, norm)

    def to_float(self) -> Any:
        """One linear layer that is both."""
        made = nn.Linear(self.in_features, self.out_features)
        made.weight, made.bias = self._merged(nn.utils.fuse_linear_bn_weights)
        return made
