"""The patterns that backends have in common, by family, for given types."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import flambeau as torch

from .... import nn
from ....nn import functional as F
from ...nn import intrinsic as nni
from ...nn import qat as nnqat
from ...nn.intrinsic import qat as nniqat
from ...nn.quantized import reference as nnqr
from ..fuser_method_mappings import (
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_in_a_row,
    fuse_linear_bn,
)
from .backend_config import BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType

DIFFERENT = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
Configs = list[BackendPatternConfig]
Types = list[DTypeConfig]

WEIGHT_AND_BIAS = {"weight": 1, "bias": 2}
RELUS = (nn.ReLU, F.relu)
EVERY_RELU = (nn.ReLU, F.relu, torch.relu)


def plain(patterns: Iterable[Any], types: Types, observation: ObservationType = DIFFERENT) -> Configs:
    """Patterns about which nothing is said but types and observers."""
    return [
        BackendPatternConfig(each).set_observation_type(observation).set_dtype_configs(list(types)) for each in patterns
    ]


def _fused(pattern: Any, types: Types, fused: type, fuser: Any) -> BackendPatternConfig:
    return BackendPatternConfig(pattern).set_dtype_configs(list(types)).set_fuser_method(fuser).set_fused_module(fused)


def _weighted(pattern: Any, types: Types, root: type, reference: type) -> BackendPatternConfig:
    made = BackendPatternConfig(pattern).set_dtype_configs(list(types))
    return made.set_root_module(root).set_reference_quantized_module(reference)


def convolutions(types: Types, dimensions: Iterable[int] = (1, 2, 3), transposed: bool = True) -> Configs:
    """Convolutions as layers and functions, with norms and rectifiers after them."""
    made: Configs = []
    for number in dimensions:
        conv, reference = getattr(nn, f"Conv{number}d"), getattr(nnqr, f"Conv{number}d")
        norm, function = getattr(nn, f"BatchNorm{number}d"), getattr(F, f"conv{number}d")
        with_relu, trained = getattr(nni, f"ConvReLU{number}d"), getattr(nnqat, f"Conv{number}d")
        made.append(_weighted(conv, types, conv, reference).set_qat_module(trained))
        made.append(_weighted(trained, types, conv, reference))
        made += [each._set_input_type_to_index(WEIGHT_AND_BIAS) for each in plain([function], types)]
        for relu in RELUS:
            made.append(_fused((conv, relu), types, with_relu, fuse_in_a_row(with_relu)))
        made += [each.set_qat_module(getattr(nniqat, f"ConvReLU{number}d")) for each in plain([with_relu], types)]
        made.append(_weighted(getattr(nniqat, f"ConvReLU{number}d"), types, conv, reference))
        made += plain([(function, relu) for relu in RELUS], types)
        with_norm, with_both = getattr(nni, f"ConvBn{number}d"), getattr(nni, f"ConvBnReLU{number}d")
        made.append(_fused((conv, norm), types, with_norm, fuse_conv_bn))
        made.append(_fused((conv, norm, nn.ReLU), types, with_both, fuse_conv_bn_relu))
        made.append(_fused((conv, norm, F.relu), types, with_both, fuse_conv_bn_relu).set_root_module(conv))
        for name, fused in ((f"ConvBn{number}d", with_norm), (f"ConvBnReLU{number}d", with_both)):
            made += [each.set_qat_module(getattr(nniqat, name)) for each in plain([fused], types)]
            made.append(_weighted(getattr(nniqat, name), types, conv, reference))
        if transposed:
            back, function = getattr(nn, f"ConvTranspose{number}d"), getattr(F, f"conv_transpose{number}d")
            reference = getattr(nnqr, f"ConvTranspose{number}d")
            made.append(_weighted(back, types, back, reference))
            made.append(_weighted((back, norm), types, back, reference).set_fuser_method(fuse_convtranspose_bn))
            made += [each._set_input_type_to_index(WEIGHT_AND_BIAS) for each in plain([function], types)]
    return made


def linear_maps(types: Types) -> Configs:
    """Linear layers and their function."""
    made = [
        _weighted(nn.Linear, types, nn.Linear, nnqr.Linear).set_qat_module(nnqat.Linear),
        _weighted(nnqat.Linear, types, nn.Linear, nnqr.Linear),
    ]
    return made + [each._set_input_type_to_index(WEIGHT_AND_BIAS) for each in plain([F.linear], types)]


def linear_with_others(types: Types) -> Configs:
    """Linear layers with rectifiers and norms after them."""
    row = fuse_in_a_row(nni.LinearReLU)
    made = [_fused((nn.Linear, relu), types, nni.LinearReLU, row) for relu in RELUS]
    made.append(_weighted(nni.LinearReLU, types, nn.Linear, nnqr.Linear).set_qat_module(nniqat.LinearReLU))
    made.append(_weighted(nniqat.LinearReLU, types, nn.Linear, nnqr.Linear))
    made += plain([(F.linear, relu) for relu in RELUS], types)
    made.append(_fused((nn.Linear, nn.BatchNorm1d), types, nni.LinearBn1d, fuse_linear_bn))
    made.append(_weighted(nni.LinearBn1d, types, nn.Linear, nnqr.Linear).set_qat_module(nniqat.LinearBn1d))
    made.append(_weighted(nniqat.LinearBn1d, types, nn.Linear, nnqr.Linear))
    return made


def binary(types: Types, names: Sequence[str] = ("add", "mul"), product: bool = True) -> Configs:
    """Sums and products of two tensors, or of a tensor and a number, which changes the tensor's own scale."""
    patterns: list[Any] = []
    for name in names:
        for function in (getattr(operator, name), getattr(torch, name)):
            patterns += [*((function, relu) for relu in EVERY_RELU), function]
    by_number = {0: DIFFERENT, 1: SHARED, 2: DIFFERENT}
    made = [each._set_num_tensor_args_to_observation_type(by_number) for each in plain(patterns, types)]
    return made + (plain([torch.matmul], types) if product else [])


def activations_and_norms(types: Types) -> Configs:
    """What gives numbers of another range."""
    layers = "ELU LeakyReLU Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d Dropout PReLU"
    made = plain([getattr(nn, name) for name in layers.split()], types)
    made += plain([F.elu, F.hardswish, F.leaky_relu, F.dropout], types)
    for function, weight in ((F.group_norm, 2), (F.instance_norm, 3)):
        made += [
            each._set_input_type_to_index({"weight": weight, "bias": weight + 1}) for each in plain([function], types)
        ]
    return made


def _fixed(own: DTypeConfig, scale: float, zero_point: int) -> DTypeConfig:
    """The types with the one scale that is taken, where codes are of 8 bits without a sign."""
    if own.input_dtype is not torch.quint8 or own.output_dtype is not torch.quint8:
        return own
    bound = DTypeWithConstraints(torch.quint8, 0, 255, None, None, scale, zero_point)
    return DTypeConfig(bound, bound, own.weight_dtype_with_constraints, own.bias_dtype, own.is_dynamic)


def known_ranges(types: Types) -> Configs:
    """What gives numbers between 0 and 1, or between -1 and 1."""
    unit = [_fixed(each, 1 / 256, 0) for each in types]
    symmetric = [_fixed(each, 2 / 256, 128) for each in types]
    made = plain([nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_"], unit)
    made += plain([nn.Sigmoid, torch.sigmoid, "sigmoid", "sigmoid_", nn.Softmax], unit)
    return made + plain([nn.Tanh, torch.tanh, "tanh", "tanh_"], symmetric)


def same_codes(types: Types) -> Configs:
    """What keeps the scale of its input: pooling, clamping, shapes."""
    layers = (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Hardtanh Identity "
        "MaxPool1d MaxPool2d MaxPool3d PixelShuffle PixelUnshuffle ReLU ReLU6"
    )
    functional = (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d hardtanh hardtanh_ interpolate max_pool1d "
        "max_pool2d max_pool3d pixel_shuffle pixel_unshuffle relu relu6 avg_pool1d avg_pool2d avg_pool3d"
    )
    functions = "clamp flatten mean narrow repeat_interleave transpose squeeze stack unsqueeze"
    methods = (
        "contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu relu_ squeeze "
        "squeeze_ transpose unsqueeze unsqueeze_ view"
    )
    patterns: list[Any] = [getattr(nn, name) for name in layers.split()]
    patterns += [getattr(F, name) for name in functional.split()]
    patterns += [getattr(torch, name) for name in functions.split()]
    return plain([*patterns, operator.floordiv, *methods.split()], types, SHARED)


def concatenation(types: Types) -> Configs:
    """Tensors end to end."""
    return plain([torch.cat], types, SHARED)


def sizes(types: Types) -> Configs:
    """What gives no tensor."""
    return plain(["shape", "size"], types, ObservationType.INPUT_OUTPUT_NOT_OBSERVED)


def batch_norms(types: Types) -> Configs:
    """Batch norms by themselves, with and without a rectifier."""
    made: Configs = []
    for norm, fused in ((nn.BatchNorm2d, nni.BNReLU2d), (nn.BatchNorm3d, nni.BNReLU3d)):
        made += [_fused((norm, relu), types, fused, fuse_in_a_row(fused)) for relu in RELUS]
        made += plain([norm], types)
    return made + plain([nni.BNReLU2d, nni.BNReLU3d], types)


def layer_norms(types: Types) -> Configs:
    """The patterns of layer norms that a backend quantizes."""
    function = plain([F.layer_norm], types)[0]._set_input_type_to_index({"weight": 2, "bias": 3})
    return [*plain([nn.LayerNorm], types), function]


def recurrent(types: Types) -> Configs:
    """Recurrent layers and cells."""
    names = ("GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    return [_weighted(getattr(nn, name), types, getattr(nn, name), getattr(nnqr, name)) for name in names]


def embeddings(types: Types) -> Configs:
    """The patterns of embeddings that a backend quantizes."""
    made: Configs = []
    for name in ("Embedding", "EmbeddingBag"):
        own, trained, reference = getattr(nn, name), getattr(nnqat, name), getattr(nnqr, name)
        made.append(_weighted(own, types, own, reference).set_qat_module(trained))
        made.append(_weighted(trained, types, own, reference))
    return made
