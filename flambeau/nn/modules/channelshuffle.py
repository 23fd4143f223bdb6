"""Interleaving groups of channels."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Takes the channels of several groups in turn, so that the next grouped layer sees all groups.

    Args:
        groups (int): how many groups the channels are in; it divides their number.

    Shape:
        input: (N, C, *)
        output: the shape of the input

    Raises:
        RuntimeError: the channels do not divide into `groups`.

    Example:
        >>> flambeau.nn.ChannelShuffle(2)(flambeau.arange(4.0).view(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    __constants__: ClassVar[list[str]] = ["groups"]

    groups: int

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
