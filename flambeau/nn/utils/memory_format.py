"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import Any, TypeVar

from ..._core.text.inherited_docs import documented_like
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all 2-d convolutions in `module` into a memory format, such as `channels_last`.

    Args:
        module (M): the module.
        memory_format: the order of the elements in memory, such as `torch.channels_last`.

    Returns:
        Module: `module` itself.

    Example:
        >>> layer = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(3, 8, 3), torch.channels_last)
        >>> layer.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


@documented_like(convert_conv2d_weight_memory_format)
def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all 3-d convolutions in `module` into a memory format, such as `channels_last_3d`.

    Example:
        >>> layer = torch.nn.utils.convert_conv3d_weight_memory_format(torch.nn.Conv3d(3, 8, 3), torch.channels_last_3d)
        >>> layer.weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module: M, memory_format: Any, layers: tuple[type[Module], ...]) -> M:
    for each in module.modules():
        if isinstance(each, layers):
            weight: Any = each.weight
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module
