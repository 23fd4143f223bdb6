"""Modules that are one module for what quantizes: convolutions, linear layers and norms with what follows them."""

from __future__ import annotations

from typing import Any

from flambeau import nn

from ...._constructors import takes

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d",
    "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip


class _FusedModule(nn.Sequential):
    """Some modules in a row: a class names them and their classes, `class ConvReLU1d(_FusedModule, conv=nn.Conv1d)`."""

    _parts: tuple[type, ...] = ()

    def __init_subclass__(cls, **parts: type) -> None:
        super().__init_subclass__()
        if parts:
            cls._parts = tuple(parts.values())
            made: Any = takes(*parts)(lambda self, options: _FusedModule.__init__(self, *options.values()))
            made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
            own: Any = cls
            own.__init__ = made

    def __init__(self, *modules: Any) -> None:
        if self._parts and (
            len(modules) != len(self._parts)
            or any(not isinstance(each, part) for each, part in zip(modules, self._parts, strict=True))
        ):
            found = "".join(str(type(each)) for each in modules)
            raise AssertionError(f"Incorrect types for input modules{found}")
        super().__init__(*modules)


class ConvReLU1d(_FusedModule, conv=nn.Conv1d, relu=nn.ReLU):
    """A convolution in one dimension and a rectifier."""


class ConvReLU2d(_FusedModule, conv=nn.Conv2d, relu=nn.ReLU):
    """A convolution in two dimensions and a rectifier."""


class ConvReLU3d(_FusedModule, conv=nn.Conv3d, relu=nn.ReLU):
    """A convolution in three dimensions and a rectifier."""


class LinearReLU(_FusedModule, linear=nn.Linear, relu=nn.ReLU):
    """A linear layer and a rectifier."""


class ConvBn1d(_FusedModule, conv=nn.Conv1d, bn=nn.BatchNorm1d):
    """A convolution in one dimension and a batch norm."""


class ConvBn2d(_FusedModule, conv=nn.Conv2d, bn=nn.BatchNorm2d):
    """A convolution in two dimensions and a batch norm."""


class ConvBn3d(_FusedModule, conv=nn.Conv3d, bn=nn.BatchNorm3d):
    """A convolution in three dimensions and a batch norm."""


class ConvBnReLU1d(_FusedModule, conv=nn.Conv1d, bn=nn.BatchNorm1d, relu=nn.ReLU):
    """A convolution in one dimension, a batch norm and a rectifier."""


class ConvBnReLU2d(_FusedModule, conv=nn.Conv2d, bn=nn.BatchNorm2d, relu=nn.ReLU):
    """A convolution in two dimensions, a batch norm and a rectifier."""


class ConvBnReLU3d(_FusedModule, conv=nn.Conv3d, bn=nn.BatchNorm3d, relu=nn.ReLU):
    """A convolution in three dimensions, a batch norm and a rectifier."""


class BNReLU2d(_FusedModule, batch_norm=nn.BatchNorm2d, relu=nn.ReLU):
    """A batch norm of images and a rectifier."""


class BNReLU3d(_FusedModule, batch_norm=nn.BatchNorm3d, relu=nn.ReLU):
    """A batch norm of volumes and a rectifier."""


class LinearBn1d(_FusedModule, linear=nn.Linear, bn=nn.BatchNorm1d):
    """A linear layer and a batch norm."""


class LinearLeakyReLU(_FusedModule, linear=nn.Linear, leaky_relu=nn.LeakyReLU):
    """A linear layer and a leaky rectifier."""


class LinearTanh(_FusedModule, linear=nn.Linear, tanh=nn.Tanh):
    """A linear layer and a hyperbolic tangent."""


class ConvAdd2d(_FusedModule):
    """A convolution of images, to whose result something is added."""

    def __init__(self, conv: Any, add: Any) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The convolution of the first, with the second added."""
        return self._sum(*args, **kwargs)

    def _sum(self, x1: Any, x2: Any) -> Any:
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution in two dimensions, an addition and a rectifier."""

    def __init__(self, conv: Any, add: Any, relu: Any) -> None:
        super().__init__(conv)
        self.add = add
        self.relu = relu

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The convolution of the first, with the second added, rectified."""
        return self._sum(*args, **kwargs)

    def _sum(self, x1: Any, x2: Any) -> Any:
        return self.relu(self.add(self[0](x1), x2))
