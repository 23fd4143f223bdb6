"""Modules that are one module for what quantizes: convolutions, linear layers and norms with what follows them."""

from __future__ import annotations

from typing import Any

from flambeau import nn

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d",
    "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip


class _FusedModule(nn.Sequential):
    """Some modules in a row, of the classes `_parts`."""

    _parts: tuple[type, ...] = ()

    def __init__(self, *modules: Any) -> None:
        if self._parts and (
            len(modules) != len(self._parts)
            or any(not isinstance(each, part) for each, part in zip(modules, self._parts, strict=True))
        ):
            found = "".join(str(type(each)) for each in modules)
            raise AssertionError(f"Incorrect types for input modules{found}")
        super().__init__(*modules)


class ConvReLU1d(_FusedModule):
    """A convolution in one dimension and a rectifier."""

    _parts = (nn.Conv1d, nn.ReLU)

    def __init__(self, conv: Any, relu: Any) -> None:
        super().__init__(conv, relu)


class ConvReLU2d(_FusedModule):
    """A convolution in two dimensions and a rectifier."""

    _parts = (nn.Conv2d, nn.ReLU)

    def __init__(self, conv: Any, relu: Any) -> None:
        super().__init__(conv, relu)


class ConvReLU3d(_FusedModule):
    """A convolution in three dimensions and a rectifier."""

    _parts = (nn.Conv3d, nn.ReLU)

    def __init__(self, conv: Any, relu: Any) -> None:
        super().__init__(conv, relu)


class LinearReLU(_FusedModule):
    """A linear layer and a rectifier."""

    _parts = (nn.Linear, nn.ReLU)

    def __init__(self, linear: Any, relu: Any) -> None:
        super().__init__(linear, relu)


class ConvBn1d(_FusedModule):
    """A convolution in one dimension and a batch norm."""

    _parts = (nn.Conv1d, nn.BatchNorm1d)

    def __init__(self, conv: Any, bn: Any) -> None:
        super().__init__(conv, bn)


class ConvBn2d(_FusedModule):
    """A convolution in two dimensions and a batch norm."""

    _parts = (nn.Conv2d, nn.BatchNorm2d)

    def __init__(self, conv: Any, bn: Any) -> None:
        super().__init__(conv, bn)


class ConvBn3d(_FusedModule):
    """A convolution in three dimensions and a batch norm."""

    _parts = (nn.Conv3d, nn.BatchNorm3d)

    def __init__(self, conv: Any, bn: Any) -> None:
        super().__init__(conv, bn)


class ConvBnReLU1d(_FusedModule):
    """A convolution in one dimension, a batch norm and a rectifier."""

    _parts = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)

    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        super().__init__(conv, bn, relu)


class ConvBnReLU2d(_FusedModule):
    """A convolution in two dimensions, a batch norm and a rectifier."""

    _parts = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)

    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        super().__init__(conv, bn, relu)


class ConvBnReLU3d(_FusedModule):
    """A convolution in three dimensions, a batch norm and a rectifier."""

    _parts = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)

    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        super().__init__(conv, bn, relu)


class BNReLU2d(_FusedModule):
    """A batch norm of images and a rectifier."""

    _parts = (nn.BatchNorm2d, nn.ReLU)

    def __init__(self, batch_norm: Any, relu: Any) -> None:
        super().__init__(batch_norm, relu)


class BNReLU3d(_FusedModule):
    """A batch norm of volumes and a rectifier."""

    _parts = (nn.BatchNorm3d, nn.ReLU)

    def __init__(self, batch_norm: Any, relu: Any) -> None:
        super().__init__(batch_norm, relu)


class LinearBn1d(_FusedModule):
    """A linear layer and a batch norm."""

    _parts = (nn.Linear, nn.BatchNorm1d)

    def __init__(self, linear: Any, bn: Any) -> None:
        super().__init__(linear, bn)


class LinearLeakyReLU(_FusedModule):
    """A linear layer and a leaky rectifier."""

    _parts = (nn.Linear, nn.LeakyReLU)

    def __init__(self, linear: Any, leaky_relu: Any) -> None:
        super().__init__(linear, leaky_relu)


class LinearTanh(_FusedModule):
    """A linear layer and a hyperbolic tangent."""

    _parts = (nn.Linear, nn.Tanh)

    def __init__(self, linear: Any, tanh: Any) -> None:
        super().__init__(linear, tanh)


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
