"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all 2-d convolutions in `module` into a memory format, such as `channels_last`."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all 3-d convolutions in `module` into a memory format, such as `channels_last_3d`."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module: M, memory_format: Any, layers: tuple[type[Module], ...]) -> M:
    for each in module.modules():
        if isinstance(each, layers):
            weight: Any = each.weight
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module
