"""Elementwise functions that are ops of their own, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.device import channels_last, channels_last_3d, contiguous_format
from ..._dispatch.op import Op
from .level import Vmap
from .rules import aligned, along, as_it_is, broadcast, give, rule

give(
    as_it_is,
    "contiguous_clone conjugate conjugate_in_place alias detach alias_copy conj neg_view zero",
    "filled_with_number fill_number pow_number threshold hardtanh leaky_relu rrelu_mean elu celu gelu silu",
    "mish softplus log_sigmoid hardsigmoid hardswish hardshrink softshrink frexp polygamma mvlgamma",
    "clamp_numbers clamp_min_number clamp_max_number round_decimals logit angle nan_to_num",
    "view_as_real view_as_real_copy one_hot at_least",
    "overwritten_UniformBackward0 overwritten_NormalBackward0 overwritten_LogNormalBackward0",
    "overwritten_ExponentialBackward0 overwritten_CauchyBackward0 overwritten_GeometricBackward0",
    "overwritten_BernoulliBackward1 overwritten_BernoulliBackward2 overwritten_RandomBackward0",
    "overwritten_RandomBackward1 overwritten_RandomBackward2",
)
give(
    aligned,
    "add_scaled sub_scaled rsub_scaled div_trunc_half isclose complex polar lerp_number lerp_tensor",
    "addcmul addcdiv gamma_slope beta_slope",
)
give(
    broadcast,
    "only_where masked_fill_number masked_fill_tensor clamp_tensors clamp_min_tensor clamp_max_tensor",
    "sigmoid_backward tanh_backward threshold_backward leaky_relu_backward rrelu_noise prelu elu_backward",
    "gelu_backward hardswish_backward native_dropout native_dropout_backward copy filled_with_tensor",
    "fill_tensor copy_across copied_like where",
)
give(along("dim"), "glu")

_OF_IMAGES = (channels_last, channels_last_3d)


@rule("view_as_complex", "view_as_complex_copy")
def _view_as_complex(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    value = args[0].value
    return op(
        value
        if value.stride(-1) == 1 and not any(each % 2 for each in value.stride()[:-1])
        else value.clone(memory_format=contiguous_format)
    )


@rule("clone")
def _clone(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, memory_format = args
    return op(tensor.value, None if memory_format in _OF_IMAGES else memory_format)


@rule("to_copy", "to_device")
def _convert(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dtype, memory_format, *rest = args
    return op(tensor.value, dtype, None if memory_format in _OF_IMAGES else memory_format, *rest)


@rule("copy_")
def _copy(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    target, source = args
    _check_target(level, target, "copy_")
    if not level.has(source):
        target.value.copy_(source)
        return
    value = source.value
    missing = target._array.ndim - source._array.ndim
    if missing > 0:
        value = value.reshape(level.size, *[1] * missing, *source._array.shape)
    target.value.copy_(value)


@rule("fill_")
def _fill(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    args[0].value.fill_(args[1])


def _check_target(level: Vmap, target: Any, name: str) -> None:
    if not level.has(target):
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
            "has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
            f"vmapped over in a vmap. Please try to use out-of-place operators instead of {name}."
        )
