"""Modules for tensors in the layout `_mkldnn`, made of ordinary ones: their weights are buffers in that layout."""

from __future__ import annotations

from typing import Any

from .._core.dtype import bfloat16, dtype, float16, float32
from .._core.tensor import Tensor
from ..jit import ScriptModule
from ..nn import functional
from ..nn.modules.activation import PReLU
from ..nn.modules.batchnorm import BatchNorm2d, BatchNorm3d
from ..nn.modules.conv import Conv1d, Conv2d, Conv3d
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module

__all__ = [
    "MkldnnBatchNorm", "MkldnnConv1d", "MkldnnConv2d", "MkldnnConv3d", "MkldnnLinear", "MkldnnPrelu", "to_mkldnn"
]  # fmt: skip


def _kept(parameter: Any, kind: dtype = float32) -> Any:
    """A parameter as a buffer."""
    return parameter.detach().to_mkldnn(kind if parameter.dtype is float32 else None)


class MkldnnLinear(ScriptModule):
    """A linear layer; of a dense input the result is dense too."""

    def __init__(self, dense_module: Any, dtype: dtype) -> None:
        super().__init__()
        bias = dense_module.bias
        self.register_buffer("weight", _kept(dense_module.weight, dtype))
        # Without a bias the layer adds zeros.
        self.register_buffer("bias", _kept(dense_module.weight.new_zeros(dense_module.out_features)
                                           if bias is None else bias))  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a tensor of any layout."""
        opaque: Any = x if x.is_mkldnn else x.to_mkldnn()
        result: Any = functional.linear(opaque, self.weight, self.bias)
        dense: Tensor = result if x.is_mkldnn else result.to_dense()
        return dense


class _MkldnnConvNd(ScriptModule):
    def __init__(self, dense_module: Any, dtype: dtype) -> None:
        super().__init__()
        self.stride, self.padding = dense_module.stride, dense_module.padding
        self.dilation, self.groups = dense_module.dilation, dense_module.groups
        bias = dense_module.bias
        self.register_buffer("bias", _kept(dense_module.weight.new_zeros(dense_module.out_channels)
                                           if bias is None else bias))  # fmt: skip
        self.register_buffer("weight", _kept(dense_module.weight, dtype))

    def _convolved(self, function: Any, x: Tensor) -> Tensor:
        made: Tensor = function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        return made


class MkldnnConv1d(_MkldnnConvNd):
    """A convolution of sequences."""

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a tensor of any layout."""
        return self._convolved(functional.conv1d, x)


class MkldnnConv2d(_MkldnnConvNd):
    """A convolution of images."""

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a tensor of any layout."""
        return self._convolved(functional.conv2d, x)


class MkldnnConv3d(_MkldnnConvNd):
    """A convolution of volumes."""

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a tensor of any layout."""
        return self._convolved(functional.conv3d, x)


class MkldnnBatchNorm(ScriptModule):
    """Batch normalization by the running statistics."""

    def __init__(self, dense_module: Any) -> None:
        super().__init__()
        for asked, what in (
            (not dense_module.training, "Only support eval mode batchnorm for mkldnn path now"),
            (dense_module.track_running_stats, "Only support track_running_stats=True for mkldnn path now"),
            (dense_module.affine, "Only support affine=True for mkldnn path now"),
        ):
            if not asked:
                raise AssertionError(what)
        self.exponential_average_factor = 0.0 if dense_module.momentum is None else dense_module.momentum
        self.eps = dense_module.eps
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, _kept(getattr(dense_module, name)))

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a tensor of any layout."""
        made: Tensor = functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, False, self.exponential_average_factor,
            self.eps,
        )  # fmt: skip
        return made


class MkldnnPrelu(ScriptModule):
    """`relu` with a learnt slope below zero; of a dense input the result is dense too."""

    def __init__(self, dense_module: Any, dtype: dtype) -> None:
        super().__init__()
        self.register_buffer("weight", _kept(dense_module.weight, dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a tensor of any layout."""
        opaque: Any = x if x.is_mkldnn else x.to_mkldnn()
        result: Any = functional.prelu(opaque, self.weight)
        dense: Tensor = result if x.is_mkldnn else result.to_dense()
        return dense


_LAYERS: dict[type, Any] = {
    Linear: MkldnnLinear, Conv1d: MkldnnConv1d, Conv2d: MkldnnConv2d, Conv3d: MkldnnConv3d, PReLU: MkldnnPrelu
}  # fmt: skip
"""The layers that exist for the layout; batch normalization has no choice of a dtype."""


def to_mkldnn(module: Module, dtype: dtype = float32) -> Module:
    """A module with the layers that exist for the layout in the place of ordinary ones; the others are the module's."""
    if dtype not in (float32, bfloat16, float16):
        raise AssertionError("MKLDNN only support float, bfloat16, and half path now")
    made = _converted(module, dtype)
    if made is module:
        for name, child in list(module.named_children()):
            module._modules[name] = to_mkldnn(child, dtype)
    return made


def _converted(module: Module, dtype: dtype) -> Module:
    if isinstance(module, (BatchNorm2d, BatchNorm3d)):
        return MkldnnBatchNorm(module)
    for kind, layer in _LAYERS.items():
        if isinstance(module, kind):
            made: Module = layer(module, dtype)
            return made
    return module
