"""The backend of servers' newer kernels, which add, clip and curve in the same step as they multiply."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import flambeau as torch

from .... import nn
from ....nn import functional as F
from ....nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ...nn import intrinsic as nni
from ...nn.quantized import reference as nnqr
from ..fuser_method_mappings import fuse_in_a_row
from ..utils import MatchAllNode
from . import _families as families
from . import _types
from ._standard import Standard
from .backend_config import BackendConfig, BackendPatternConfig

__all__ = ["get_onednn_backend_config"]

_LINEAR = [_types.WEIGHTED, _types.DYNAMIC]


def _sum_of(pattern: Any, relu: bool) -> tuple[Any, Any]:
    """The two summands of a nested pattern."""
    _, left, right = pattern[1] if relu else pattern
    return left, right


def _conv_and_addend(pattern: Any, relu: bool, left: bool) -> tuple[Any, Any]:
    one, other = _sum_of(pattern, relu)
    return (one, other) if left else (other, one)


def _with_sum(add: Any, norm: bool, relu: bool, left: bool) -> BackendPatternConfig:
    """A convolution whose result is added to something, with a norm before and a rectifier after."""
    conv: Any = (nn.BatchNorm2d, nn.Conv2d) if norm else nn.Conv2d
    pattern: Any = (add, conv, MatchAllNode) if left else (add, MatchAllNode, conv)
    if relu:
        pattern = nn.ReLU, pattern
    fused = nni.ConvAddReLU2d if relu else nni.ConvAdd2d

    def root(pattern: Any) -> Any:
        found, _ = _conv_and_addend(pattern, relu, left)
        return found[1] if norm else found

    def further(pattern: Any) -> list[Any]:
        return [_conv_and_addend(pattern, relu, left)[1]]

    def fuse(is_qat: bool, *parts: Any) -> Any:
        if is_qat:
            raise NotImplementedError(f"Cannot fuse train modules: {parts}")
        found, _ = _conv_and_addend(parts[1] if relu else parts, False, left)
        module = fuse_conv_bn_eval(found[1], found[0]) if norm else found
        sum_of = parts[1][0] if relu else parts[0]
        return nni.ConvAddReLU2d(module, sum_of, parts[0]) if relu else nni.ConvAdd2d(module, sum_of)

    made = BackendPatternConfig()._set_pattern_complex_format(pattern).set_dtype_configs([_types.WEIGHTED])
    made.set_fuser_method(fuse).set_fused_module(fused)
    return made._set_root_node_getter(root)._set_extra_inputs_getter(further)


def _fuse_linear_bn_leaky_relu(is_qat: bool, linear: Any, bn: Any, leaky_relu: Any) -> Any:
    if is_qat:
        raise NotImplementedError(f"Cannot fuse train modules: {(linear, bn, leaky_relu)}")
    if not linear.training == bn.training == leaky_relu.training:
        raise AssertionError("Linear, BN and LeakyReLU all must be in the same mode (train or eval).")
    return nni.LinearLeakyReLU(fuse_linear_bn_eval(linear, bn), leaky_relu)


def _fused(pattern: Any, fused: type, fuser: Callable[..., Any]) -> BackendPatternConfig:
    made = BackendPatternConfig(pattern).set_dtype_configs(list(_LINEAR))
    return made.set_fuser_method(fuser).set_fused_module(fused)


def _rooted(pattern: type, types: families.Types, root: type, reference: type) -> BackendPatternConfig:
    made = BackendPatternConfig(pattern).set_dtype_configs(list(types))
    return made.set_root_module(root).set_reference_quantized_module(reference)


def _fusions() -> families.Configs:
    made: families.Configs = []
    for relu in (False, True):
        for left, norm, add in itertools.product((True, False), (True, False), (torch.add, operator.add)):
            made.append(_with_sum(add, norm, relu, left))
        fused: type = nni.ConvAddReLU2d if relu else nni.ConvAdd2d
        made.append(_rooted(fused, [_types.WEIGHTED], nn.Conv2d, nnqr.Conv2d))
    for fused, functions in ((nni.LinearLeakyReLU, (nn.LeakyReLU, F.leaky_relu)), (nni.LinearTanh, (nn.Tanh, torch.tanh))):  # noqa: E501  # fmt: skip
        made += [_fused((nn.Linear, each), fused, fuse_in_a_row(fused)) for each in functions]
        made.append(_rooted(fused, _LINEAR, nn.Linear, nnqr.Linear))
        made += families.plain([(F.linear, each) for each in functions], _LINEAR)
    row = (nn.Linear, nn.BatchNorm1d, nn.LeakyReLU)
    made.append(_fused(row, nni.LinearLeakyReLU, _fuse_linear_bn_leaky_relu))
    return made


def get_onednn_backend_config() -> BackendConfig:
    """What is quantized for it."""
    standard = Standard(
        linear=_LINEAR,
        sizes=[],
        layer_norm=[_types.FLOAT_WEIGHTED],
        recurrent=[_types.DYNAMIC],
        embedding=[_types.SIGNED_WEIGHT_ONLY],
    )
    return standard.named("onednn").set_backend_pattern_configs(_fusions())
