"""How neighbouring modules become one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ... import nn
from ...nn.utils import fusion
from ..nn import intrinsic as nni
from .utils import MatchAllNode

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method",
    "get_fuser_method_new",
]  # fmt: skip


def _check_modes(*modules: Any, names: str = "Conv") -> None:
    if len({module.training for module in modules}) > 1:
        raise AssertionError(f"{names} and BN both must be in the same mode (train or eval).")


def _check_statistics(outputs: int, bn: Any) -> None:
    if bn.num_features != outputs:
        raise AssertionError(f"Output channel of the layer, {outputs}, must match num_features of {bn}")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with tracking_running_stats set to True")


def _fused_class(classes: dict[Any, Any], mode: str, modules: tuple[Any, ...]) -> Any:
    found = classes.get(type(modules[0]))
    if found is None:
        raise NotImplementedError(f"Cannot fuse {mode} modules: {modules}")
    return found


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """One module for a convolution and a batch norm: for training both in a row, else a convolution that is both."""
    _check_modes(conv, bn)
    if not is_qat:
        return fusion.fuse_conv_bn_eval(conv, bn)
    _check_statistics(conv.out_channels, bn)
    classes = {nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}
    return _fused_class(classes, "train", (conv, bn))(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """A convolution, a batch norm and a rectifier as one module."""
    _check_modes(conv, bn, relu)
    if is_qat:
        _check_statistics(conv.out_channels, bn)
        classes = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
        return _fused_class(classes, "train", (conv, bn, relu))(conv, bn, relu)
    plain = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}
    return _fused_class(plain, "eval", (conv, bn, relu))(fusion.fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """One module for a linear layer and a batch norm."""
    _check_modes(linear, bn, names="Linear")
    if not is_qat:
        return fusion.fuse_linear_bn_eval(linear, bn)
    _check_statistics(linear.out_features, bn)
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """One module for a transposed convolution and a batch norm."""
    _check_modes(convt, bn, names="ConvTranspose")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fusion.fuse_conv_bn_eval(convt, bn, transpose=True)


def fuse_in_a_row(sequential: type) -> Callable[..., Any]:
    """What puts modules into a class that runs them in a row."""
    return lambda is_qat, *modules: sequential(*modules)


_METHODS: dict[tuple[type, ...], Callable[..., Any]] = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): fuse_in_a_row(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): fuse_in_a_row(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): fuse_in_a_row(nni.BNReLU3d),
}
for _conv, _transposed, _bn, _row in (
    (nn.Conv1d, nn.ConvTranspose1d, nn.BatchNorm1d, nni.ConvReLU1d),
    (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d, nni.ConvReLU2d),
    (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d, nni.ConvReLU3d),
):
    _METHODS[_conv, _bn] = fuse_conv_bn
    _METHODS[_conv, _bn, nn.ReLU] = fuse_conv_bn_relu
    _METHODS[_conv, nn.ReLU] = fuse_in_a_row(_row)
    _METHODS[_transposed, _bn] = fuse_convtranspose_bn


def get_fuser_method(op_list: Any, additional_fuser_method_mapping: Any = None) -> Any:
    """The function that makes one module of modules of these classes."""
    found = {**_METHODS, **(additional_fuser_method_mapping or {})}.get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found


def _patterns(pattern: Any) -> list[Any]:
    """A pattern, and those with "any" in place of some of its parts."""
    if isinstance(pattern, (tuple, list)):
        return list(itertools.product(*map(_patterns, pattern)))
    return [pattern, MatchAllNode]


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: Any) -> Any:
    """The function for a pattern of nested pairs; "any" may stand for its parts."""
    for pattern in _patterns(op_pattern):
        if pattern in fuser_method_mapping:
            return fuser_method_mapping[pattern]
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
