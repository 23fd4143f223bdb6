"""What quantized modules share."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(nn.Module):
    """A module with a quantized weight, a scale and a zero point for its result."""

    scale: Any
    zero_point: Any

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """A module of this class, made from one that computes with floats."""
        raise NotImplementedError(f"{cls.__name__} has no counterpart that computes with floats")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("weight", "bias"):
            value = getattr(self, name, None)
            if callable(value):
                destination[prefix + name] = value()
        if hasattr(self, "scale"):
            destination[prefix + "scale"] = torch.tensor(self.scale)
            destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *further: Any
    ) -> None:
        if hasattr(self, "scale"):
            self.scale = float(state_dict.pop(prefix + "scale"))
            self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        if prefix + "weight" in state_dict:
            setter: Any = getattr(self, "set_weight_bias", None) or self.set_weight
            bias = (state_dict.pop(prefix + "bias"),) if prefix + "bias" in state_dict else ()
            setter(state_dict.pop(prefix + "weight"), *bias)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *further)


def quantized_weight(module: Any, watch: Any = None) -> Any:
    """The weight of a module of floats, quantized as its configuration says."""
    if watch is None:
        watch = getattr(module, "weight_fake_quant", None) or module.qconfig.weight()
    if watch.dtype is not torch.qint8:
        raise AssertionError(f"Weight observer must have a dtype of torch.qint8, not {watch.dtype}")
    watch(module.weight)
    return quantize_weight(module.weight.detach().float(), watch)


def quantize_weight(weight: Any, watch: Any) -> Any:
    """A weight, quantized with the scale and the zero point that an observer has chosen for it."""
    scale, zero_point = watch.calculate_qparams()
    if "per_tensor" in str(watch.qscheme):
        return torch.quantize_per_tensor(weight, float(scale), int(zero_point), watch.dtype)
    floats = "float_qparams" in str(watch.qscheme)
    zero_points = zero_point.to(torch.float if floats else torch.int64)
    return torch.quantize_per_channel(weight, scale.to(torch.double), zero_points, watch.ch_axis, watch.dtype)


def output_parameters(module: Any) -> tuple[float, int]:
    """The scale and the zero point that the observer of a module's result has chosen."""
    watch = getattr(module, "activation_post_process", None)
    if watch is None:
        return 1.0, 0
    scale, zero_point = watch.calculate_qparams()
    return float(scale), int(zero_point)


def requantized(result: Any, like: Any, scale: float, zero_point: int) -> Any:
    """Floats, quantized in the dtype of another tensor."""
    return torch.quantize_per_tensor(result, float(scale), int(zero_point), like.dtype)
