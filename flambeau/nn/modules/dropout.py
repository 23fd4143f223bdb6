"""Dropout: random zeros in training, the identity in evaluation."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__: ClassVar[list[str]] = ["p", "inplace"]

    _function: ClassVar[str]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(input, self.p, self.training, self.inplace)
        return result


class Dropout(_DropoutNd):
    """Sets elements to zero at random in training, and scales the others so that the mean stays.

    Each element is zeroed with probability `p` and otherwise multiplied by `1 / (1 - p)`. In evaluation the input is
    returned.

    Args:
        p (float): the probability with which an element becomes zero. Default: `0.5`.
        inplace (bool): whether the module overwrites its input instead of making a new tensor. Default: `False`.

    Shape:
        input: any shape
        output: the shape of the input

    Raises:
        ValueError: `p` is not from 0 to 1.

    Example:
        >>> layer = flambeau.nn.Dropout(0.5)
        >>> sorted(set(layer(flambeau.ones(1000)).tolist()))
        [0.0, 2.0]
        >>> layer.eval()(flambeau.ones(3))
        tensor([1., 1., 1.])
    """

    _function = "dropout"


@documented_like(Dropout)
class Dropout1d(_DropoutNd):
    """Sets whole channels of signals to zero at random in training, and scales the others so that the mean stays.

    Each channel of each sample is zeroed with probability `p` and otherwise multiplied by `1 / (1 - p)`. In evaluation
    the input is returned.

    Args:
        p (float): the probability with which a channel becomes zero. Default: `0.5`.

    Shape:
        input: (N, C, L) or (C, L)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.Dropout1d(0.5)
        >>> means = layer(flambeau.ones(1, 500, 3)).flatten(2).mean(2)
        >>> sorted(set(means.flatten().tolist()))
        [0.0, 2.0]
    """

    _function = "dropout1d"


@documented_like(Dropout1d)
class Dropout2d(_DropoutNd):
    """Sets whole channels of images to zero at random in training, and scales the others so that the mean stays.

    Shape:
        input: (N, C, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.Dropout2d(0.5)
        >>> means = layer(flambeau.ones(1, 500, 2, 2)).flatten(2).mean(2)
        >>> sorted(set(means.flatten().tolist()))
        [0.0, 2.0]
    """

    _function = "dropout2d"


@documented_like(Dropout1d)
class Dropout3d(_DropoutNd):
    """Sets whole channels of volumes to zero at random in training, and scales the others so that the mean stays.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.Dropout3d(0.5)
        >>> means = layer(flambeau.ones(1, 500, 2, 2, 2)).flatten(2).mean(2)
        >>> sorted(set(means.flatten().tolist()))
        [0.0, 2.0]
    """

    _function = "dropout3d"


class _AlphaDropout(_DropoutNd):
    """`inplace` is kept for its place in the signature: the result is always a new tensor."""

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(input, self.p, self.training)
        return result


@documented_like(Dropout)
class AlphaDropout(_AlphaDropout):
    """Sets elements to the lower limit of SELU at random in training, so that mean and variance stay.

    It goes with `SELU`. In evaluation the input is returned.

    Args:
        p (float): the probability with which an element is dropped. Default: `0.5`.

    Example:
        >>> layer = flambeau.nn.AlphaDropout(0.5)
        >>> len(set(layer(flambeau.ones(1000)).tolist()))
        2
        >>> layer.eval()(flambeau.ones(3))
        tensor([1., 1., 1.])
    """

    _function = "alpha_dropout"


@documented_like(Dropout)
class FeatureAlphaDropout(_AlphaDropout):
    """Sets whole channels to the lower limit of SELU at random in training, so that mean and variance stay.

    It goes with `SELU`. In evaluation the input is returned.

    Args:
        p (float): the probability with which a channel is dropped. Default: `0.5`.

    Shape:
        input: (N, C, *) or (C, *)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.FeatureAlphaDropout(0.5)
        >>> layer(flambeau.ones(2, 3, 4)).shape
        torch.Size([2, 3, 4])
        >>> layer.eval()(flambeau.ones(3))
        tensor([1., 1., 1.])
    """

    _function = "feature_alpha_dropout"
