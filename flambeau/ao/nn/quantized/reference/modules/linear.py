"""A linear layer that computes with floats as a quantized one will."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.nn import functional as F

from ....._constructors import shown_as
from .utils import ReferenceQuantizedModule

__all__ = ["Linear"]


class Linear(nn.Linear, ReferenceQuantizedModule):
    """`x @ weight.T + bias` with the weight that codes stand for."""

    _IS_REFERENCE = True

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    _get_name = shown_as("Quantized{}(Reference)")

    def forward(self, x: Any) -> Any:
        """The result in floats."""
        return F.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: Any, weight_qparams: dict[str, Any]) -> Any:
        """A reference layer with the parameters of an ordinary one."""
        made = cls(
            float_linear.in_features,
            float_linear.out_features,
            float_linear.bias is not None,
            weight_qparams=weight_qparams,
        )
        made.weight = nn.Parameter(float_linear.weight.detach())
        if float_linear.bias is not None:
            made.bias = nn.Parameter(float_linear.bias.detach())
        return made
