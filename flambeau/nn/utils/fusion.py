"""A convolution or linear layer and the batch normalisation after it, as one layer for evaluation."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create.like import ones_like, zeros_like
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

Layer = TypeVar("Layer", bound=Any)


def fuse_conv_bn_eval(conv: Layer, bn: Any, transpose: bool = False) -> Layer:
    """A copy of the convolution `conv` that does what `conv` and then `bn` do, both in evaluation mode.

    Args:
        conv (Layer): the convolution, in evaluation mode.
        bn: the batch normalisation that follows, in evaluation mode.
        transpose (bool): whether the convolution is a transposed one. Default: `False`.

    Returns:
        Module: the fused copy; `conv` and `bn` stay as they are.

    Example:
        >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
        >>> fused = torch.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = torch.ones(1, 1, 4, 4)
        >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-6)
        True
    """
    fused = _copy_for_evaluation(conv, bn)
    statistics = bn.running_mean, bn.running_var, bn.eps
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *statistics, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the fused convolution; `transpose` says that it is a transposed one.

    Args:
        conv_w (Tensor): the weight of the convolution.
        conv_b (Tensor, optional): the bias of the convolution; None means zero.
        bn_rm (Tensor): the running mean of the batch normalisation.
        bn_rv (Tensor): the running variance of the batch normalisation.
        bn_eps (float): the small number that the batch normalisation adds to the variance.
        bn_w (Tensor, optional): the weight of the batch normalisation; None means one.
        bn_b (Tensor, optional): the bias of the batch normalisation; None means zero.
        transpose (bool): whether the convolution is a transposed one. Default: `False`.

    Returns:
        tuple[Parameter, Parameter]: the new weight and the new bias.

    Example:
        >>> conv, bn = torch.nn.Conv1d(1, 2, 3), torch.nn.BatchNorm1d(2)
        >>> weight, bias = torch.nn.utils.fuse_conv_bn_weights(
        ...     conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        ... )
        >>> weight.shape, bias.shape
        (torch.Size([2, 1, 3]), torch.Size([2]))
    """
    shape = [1, -1] if transpose else [-1, 1]
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + [1] * (conv_w.dim() - 2))


def fuse_linear_bn_eval(linear: Layer, bn: Any) -> Layer:
    """A copy of the layer `linear` that does what `linear` and then `bn` do, both in evaluation mode.

    Args:
        linear (Layer): the linear layer, in evaluation mode.
        bn: the batch normalisation that follows, in evaluation mode.

    Returns:
        Module: the fused copy; `linear` and `bn` stay as they are.

    Example:
        >>> linear, bn = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
        >>> fused = torch.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = torch.ones(1, 2)
        >>> torch.allclose(fused(x), bn(linear(x)), atol=1e-6)
        True
    """
    fused = _copy_for_evaluation(linear, bn)
    # Features beside channels: a batch norm of one feature would broadcast, which no weight can express.
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1: they are "
            f"{linear.out_features} and {bn.num_features}"
        )
    statistics = bn.running_mean, bn.running_var, bn.eps
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *statistics, bn.weight, bn.bias)
    return fused


@documented_like(fuse_conv_bn_weights)
def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the fused linear layer.

    Args:
        linear_w (Tensor): the weight of the linear layer.
        linear_b (Tensor, optional): the bias of the linear layer; None means zero.

    Example:
        >>> linear, bn = torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)
        >>> weight, bias = torch.nn.utils.fuse_linear_bn_weights(
        ...     linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        ... )
        >>> weight.shape, bias.shape
        (torch.Size([3, 2]), torch.Size([3]))
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _copy_for_evaluation(layer: Layer, bn: Any) -> Layer:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval! Call .eval() on both layers first.")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None: they are what is fused")
    return copy.deepcopy(layer)


def _fused(
    weight: Any, bias: Any, mean: Any, variance: Any, eps: float, factor: Any, shift: Any, shape: list[int]
) -> tuple[Parameter, Parameter]:
    bias_dtype = weight.dtype if bias is None else bias.dtype
    bias = zeros_like(mean) if bias is None else bias
    factor = ones_like(mean) if factor is None else factor
    shift = zeros_like(mean) if shift is None else shift
    scale = factor * (variance + eps).rsqrt()
    fused_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    fused_bias = ((bias - mean) * scale + shift).to(bias_dtype)
    return Parameter(fused_weight, weight.requires_grad), Parameter(fused_bias, bias.requires_grad)
