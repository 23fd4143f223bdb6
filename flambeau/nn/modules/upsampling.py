"""Enlarging signals, images and volumes."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resizes signals, images or volumes by interpolation.

    Either `size` or `scale_factor` is given.

    Args:
        size (int or tuple of ints, optional): the sizes of the result.
        scale_factor (float or tuple of floats, optional): by how much the sizes grow.
        mode (str): "nearest", "linear" (signals), "bilinear" or "bicubic" (images), or "trilinear" (volumes). Default:
            `"nearest"`.
        align_corners (bool, optional): whether corner elements keep their place, for modes that interpolate; None means
            False.
        recompute_scale_factor (bool, optional): whether the factor is computed anew from the rounded sizes.

    Shape:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W)
        output: N, C and the new sizes

    Example:
        >>> flambeau.nn.Upsample(scale_factor=2)(flambeau.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
        >>> flambeau.nn.Upsample(size=3, mode="linear", align_corners=True)(flambeau.tensor([[[1.0, 2.0]]]))
        tensor([[[1.0000, 1.5000, 2.0000]]])
    """

    __constants__: ClassVar[list[str]] = [
        "size",
        "scale_factor",
        "mode",
        "align_corners",
        "name",
        "recompute_scale_factor",
    ]

    name: str
    size: int | tuple[int, ...] | None
    scale_factor: float | tuple[float, ...] | None
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        how = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{how}, mode={self.mode!r}"


@documented_like(Upsample)
class UpsamplingNearest2d(Upsample):
    """Resizes images by repeating pixels.

    It is `Upsample(mode="nearest")`. Either `size` or `scale_factor` is given.

    Shape:
        input: (N, C, H, W)
        output: (N, C, H', W')

    Example:
        >>> flambeau.nn.UpsamplingNearest2d(scale_factor=2)(flambeau.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])
    """

    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


@documented_like(UpsamplingNearest2d)
class UpsamplingBilinear2d(Upsample):
    """Resizes images linearly in both directions, with corners kept in place.

    It is `Upsample(mode="bilinear", align_corners=True)`. Either `size` or `scale_factor` is given.

    Example:
        >>> flambeau.nn.UpsamplingBilinear2d(size=(1, 3))(flambeau.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
