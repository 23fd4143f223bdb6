"""A linear layer whose weight is rounded as its codes will be."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.nn import functional as F

from ._base import copied_layer

__all__ = ["Linear"]


class Linear(nn.Linear):
    """`nn.Linear` with a weight that passes `weight_fake_quant` first."""

    _FLOAT_MODULE: type = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    def forward(self, input: Any) -> Any:
        """The linear map by the rounded weight."""
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A layer of this class with the parameters of a layer that has a `qconfig`."""
        layer = copied_layer(cls, mod, (nn.Linear,))
        return _with_parameters(cls(layer.in_features, layer.out_features, layer.bias is not None, mod.qconfig), layer)

    def to_float(self) -> Any:
        """An ordinary layer with the same parameters."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        return _with_parameters(made, self).train(self.training)


def _with_parameters(made: Any, source: Any) -> Any:
    made.weight = source.weight
    made.bias = source.bias
    return made
