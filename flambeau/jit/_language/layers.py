"""Operators of neural networks that no public function of their name is, with PyTorch's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._core.tensor import Tensor
from ...nn.utils.rnn import pad_sequence


@functools.cache
def _functional() -> Any:
    return torch.nn.functional


def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Any:  # fmt: skip
    return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _pad(mode: str) -> Callable[..., Any]:
    return lambda input, padding: _functional().pad(input, padding, mode=mode)


def _adaptive(name: str) -> Callable[..., Any]:
    return lambda input, size: getattr(_functional(), name)(input, size, return_indices=True)


def _elu(value: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    from ..._ops.pointwise.activation import elu_with_scales

    return elu_with_scales(value, False, alpha, scale, input_scale)


_PADDINGS = ("reflect", "replicate", "circular", "constant")


def _pad_sequence(values: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
                  ) -> Any:  # fmt: skip
    return pad_sequence(values, batch_first, padding_value, padding_side)


LAYERS: dict[str, Callable[..., Any]] = {
    "_convolution": _convolution,
    "elu": _elu,
    "__interpolate": lambda input, *args, **kwargs: _functional().interpolate(input, *args, **kwargs),
    "_pad_enum": lambda value, padding, mode, fill=None: _functional().pad(value, padding, _PADDINGS[mode], fill),
    "_pad_circular": _pad("circular"),
    "pad_sequence": _pad_sequence,
    **{f"adaptive_max_pool{n}d": _adaptive(f"adaptive_max_pool{n}d") for n in (2, 3)},
}
"""By the operator's name without `aten::`."""
