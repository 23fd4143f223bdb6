"""Linear layers whose weights are integers of 8 or 4 bits, and whose inputs stay floats."""

from __future__ import annotations

from typing import Any

from ...._core.dtype import NAMES
from ...._core.tensor import Tensor
from ...._ops.create.constants import zeros
from ...._ops.quantized import packed
from ....nn.modules.module import Module


class WeightOnlyLinear(Module):
    """A linear layer that reads a quarter (8 bits) or an eighth (4 bits) of the memory that floats take.

    With 8 bits each row of the weight has a scale; with 4 bits each `group_size` numbers of a row have a scale and a
    zero. It computes: to train, take the layer that it was made of.

    >>> layer = flambeau.nn.Linear(64, 8)
    >>> small = flambeau.ao.nn.quantized.WeightOnlyLinear.from_float(layer, bits=8)
    >>> x = flambeau.ones(2, 64)
    >>> bool((small(x) - layer(x)).abs().max() < 0.05)
    True
    """

    codes: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, bits: int = 8, group_size: int = 64
    ) -> None:
        super().__init__()
        if bits not in (4, 8):
            raise ValueError(f"WeightOnlyLinear: weights have 4 or 8 bits, not {bits}")
        if bits == 4 and in_features % group_size:
            raise ValueError(f"WeightOnlyLinear: {in_features} inputs are not groups of {group_size}")
        self.in_features, self.out_features, self.bits, self.group_size = in_features, out_features, bits, group_size
        if bits == 8:
            self.register_buffer("codes", zeros(out_features, in_features, dtype=NAMES["int8"]))
            self.register_buffer("scales", zeros(out_features))
        else:
            self.register_buffer("codes", zeros(out_features, in_features // 2, dtype=NAMES["uint8"]))
            self.register_buffer("scales", zeros(in_features // group_size, out_features, 2))
        self.register_buffer("bias", zeros(out_features) if bias else None)

    @classmethod
    def from_float(cls, mod: Any, *, bits: int = 8, group_size: int = 64) -> WeightOnlyLinear:
        """The layer in place of one with weights of 32 bits."""
        layer = cls(mod.in_features, mod.out_features, mod.bias is not None, bits=bits, group_size=group_size)
        weight = mod.weight.detach().float()
        if bits == 8:
            layer.scales.copy_(weight.abs().amax(1).clamp_(min=1e-12) / 127)
            layer.codes.copy_((weight / layer.scales[:, None]).round_().clamp_(-127, 127))
        else:
            groups = weight.unflatten(1, (-1, group_size))
            low, high = groups.amin(2, keepdim=True), groups.amax(2, keepdim=True)
            scale = (high - low).clamp_(min=1e-12) / 15
            numbers = ((groups - low) / scale).round_().clamp_(0, 15).int().flatten(1)
            layer.codes.copy_(packed._convert_weight_to_int4pack_for_cpu(numbers, 2))
            factors = [scale.squeeze(2), (low + 8 * scale).squeeze(2)]
            for place, each in enumerate(factors):
                layer.scales[:, :, place] = each.t()
        if mod.bias is not None and layer.bias is not None:
            layer.bias.copy_(mod.bias.detach())
        return layer.train(mod.training)

    def forward(self, input: Tensor) -> Tensor:
        """`input @ weight.T + bias`."""
        flat = input.detach().reshape(-1, self.in_features).contiguous()
        if self.bits == 8:
            product = packed._weight_int8pack_mm(flat, self.codes, self.scales)
        else:
            product = packed._weight_int4pack_mm_for_cpu(flat, self.codes, self.group_size, self.scales)
        if self.bias is not None:
            product += self.bias
        return product.reshape(*input.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """What the layer's line in a printed module says."""
        groups = f", group_size={self.group_size}" if self.bits == 4 else ""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"bits={self.bits}{groups}"
        )
