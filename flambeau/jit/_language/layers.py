"""Operators of neural networks: losses, normalisations, pooling, activations, in the order of PyTorch's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor


@functools.cache
def _torch() -> Any:
    import flambeau

    return flambeau


_REDUCTIONS = ("none", "mean", "sum")


@functools.cache
def _functional() -> Any:
    from ...nn import functional

    return functional


def _reduction(number: Any) -> str:
    return _REDUCTIONS[number]


def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Any:  # fmt: skip
    return _torch().convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _loss(name: str, order: Sequence[str]) -> Callable[..., Any]:
    """A loss whose last positional arguments are given by name to the function of `nn.functional`."""

    def compute(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        given["reduction"] = _reduction(given.get("reduction", 1))
        return getattr(_functional(), name)(input, target, **given)

    return compute


def _margin_loss(name: str, order: Sequence[str]) -> Callable[..., Any]:
    """A loss of three tensors."""

    def compute(first: Tensor, second: Tensor, third: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        given["reduction"] = _reduction(given.get("reduction", 1))
        return getattr(_functional(), name)(first, second, third, **given)

    return compute


def _functional_one(name: str, order: Sequence[str] = (), **fixed: Any) -> Callable[..., Any]:
    """A function of `nn.functional` whose arguments have other positions there."""

    def compute(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs, **fixed}
        return getattr(_functional(), name)(input, **{key: value for key, value in given.items() if value is not None})

    return compute


def _kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Any:
    return _functional().kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)


def _dropout(name: str, in_place: bool = False) -> Callable[..., Any]:
    return lambda input, p, train: getattr(_functional(), name)(input, p, train, in_place)


def _upsample(mode: str, dimensions: int) -> Callable[..., Any]:
    """`upsample_nearest2d` and its like: sizes, then perhaps corners, then scales, one of the two being None."""
    aligns = mode in ("linear", "bilinear", "bicubic", "trilinear")

    def compute(input: Tensor, output_size: Any, *args: Any) -> Any:
        rest = list(args)
        options: dict[str, Any] = {"align_corners": rest.pop(0)} if aligns else {}
        scales = rest[0] if rest and isinstance(rest[0], (list, tuple)) else [each for each in rest if each is not None]
        if output_size is not None:
            options["size"] = list(output_size)
        else:
            options["scale_factor"] = list(scales)
            options["recompute_scale_factor"] = False
        return _functional().interpolate(input, mode=mode, **options)

    return compute


def _pad(mode: str) -> Callable[..., Any]:
    return lambda input, padding: _functional().pad(input, padding, mode=mode)


def _any_pad(input: Tensor, padding: Any, mode: str = "constant", value: Any = None) -> Any:
    return _functional().pad(input, padding, mode, value)


def _constant_pad(input: Tensor, padding: Any, value: Any = 0) -> Any:
    return _functional().pad(input, padding, "constant", value)


def _pool(name: str, order: Sequence[str], **fixed: Any) -> Callable[..., Any]:
    def compute(input: Tensor, kernel_size: Any, *args: Any) -> Any:
        given = dict(zip(order, args, strict=False))
        if given.get("stride") == []:
            given["stride"] = None
        return getattr(_functional(), name)(input, kernel_size, **given, **fixed)

    return compute


_MAX = ("stride", "padding", "dilation", "ceil_mode")


_AVG = ("stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")


def _adaptive(name: str, **fixed: Any) -> Callable[..., Any]:
    return lambda input, size: getattr(_functional(), name)(input, size, **fixed)


def _gelu(value: Tensor, *, approximate: str = "none") -> Any:
    return _functional().gelu(value, approximate=approximate)


def _elu(in_place: bool) -> Callable[..., Any]:
    def compute(value: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
        if scale == 1 and input_scale == 1:
            return _functional().elu(value, alpha, in_place)
        raise NotImplementedError("aten::elu with scales")

    return compute


def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    order = ("attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    return _functional().scaled_dot_product_attention(query, key, value, **given)


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    result = _functional().embedding_bag(
        indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=("sum", "mean", "max")[mode],
        sparse=sparse, per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )  # fmt: skip
    return result, indices, indices, indices


def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int = 0, reduction: int = 1, zero: Any = False,
         ) -> Any:  # fmt: skip
    return _functional().ctc_loss(log_probs, targets, inputs, lengths, blank, _reduction(reduction), zero)


def _batch_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: Any, momentum: Any, eps: Any,
                *_: Any) -> Any:  # fmt: skip
    return _functional().batch_norm(input, mean, var, weight, bias, training, momentum, eps)


def _instance_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: Any, momentum: Any,
                   eps: Any, *_: Any) -> Any:  # fmt: skip
    return _functional().instance_norm(input, mean, var, weight, bias, use_input_stats, momentum, eps)


def _layer_norm(input: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    return _functional().layer_norm(input, shape, weight, bias, eps)


def _group_norm(input: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    return _functional().group_norm(input, groups, weight, bias, eps)


def _packed(input: Any, lengths: Any, batch_first: bool) -> Any:
    from ...nn.utils.rnn import pack_padded_sequence

    return tuple(pack_padded_sequence(input, lengths, batch_first)[:2])


def _unpacked(data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: int) -> Any:
    from ...nn.utils.rnn import PackedSequence, pad_packed_sequence

    sequence = PackedSequence(data, batch_sizes, None, None)
    return pad_packed_sequence(sequence, batch_first, padding_value, None if total_length <= 0 else total_length)


_PADDINGS = ("constant", "reflect", "replicate", "circular")


def _pad_sequence(values: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
                  ) -> Any:  # fmt: skip
    from ...nn.utils.rnn import pad_sequence

    return pad_sequence(values, batch_first, padding_value, padding_side)


LAYERS: dict[str, Callable[..., Any]] = {
    "_convolution": _convolution,
    "dropout": _dropout("dropout"),
    "dropout_": _dropout("dropout", True),
    "alpha_dropout": _dropout("alpha_dropout"),
    "alpha_dropout_": _dropout("alpha_dropout", True),
    "feature_alpha_dropout": _dropout("feature_alpha_dropout"),
    "feature_alpha_dropout_": _dropout("feature_alpha_dropout", True),
    "kl_div": _kl_div,
    "nll_loss": _loss("nll_loss", ("weight", "reduction", "ignore_index")),
    "nll_loss2d": _loss("nll_loss", ("weight", "reduction", "ignore_index")),
    "nll_loss_nd": _loss("nll_loss", ("weight", "reduction", "ignore_index")),
    "cross_entropy_loss": _loss("cross_entropy", ("weight", "reduction", "ignore_index", "label_smoothing")),
    "binary_cross_entropy": _loss("binary_cross_entropy", ("weight", "reduction")),
    "binary_cross_entropy_with_logits": _loss(
        "binary_cross_entropy_with_logits", ("weight", "pos_weight", "reduction")
    ),
    "mse_loss": _loss("mse_loss", ("reduction",)),
    "l1_loss": _loss("l1_loss", ("reduction",)),
    "smooth_l1_loss": _loss("smooth_l1_loss", ("reduction", "beta")),
    "huber_loss": _loss("huber_loss", ("reduction", "delta")),
    "soft_margin_loss": _loss("soft_margin_loss", ("reduction",)),
    "multilabel_margin_loss": _loss("multilabel_margin_loss", ("reduction",)),
    "multi_margin_loss": _loss("multi_margin_loss", ("p", "margin", "weight", "reduction")),
    "hinge_embedding_loss": _loss("hinge_embedding_loss", ("margin", "reduction")),
    "poisson_nll_loss": lambda input, target, log_input, full, eps, reduction: _functional().poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_reduction(reduction)
    ),
    "margin_ranking_loss": _margin_loss("margin_ranking_loss", ("margin", "reduction")),
    "cosine_embedding_loss": _margin_loss("cosine_embedding_loss", ("margin", "reduction")),
    "triplet_margin_loss": _margin_loss("triplet_margin_loss", ("margin", "p", "eps", "swap", "reduction")),
    "ctc_loss": _ctc,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "embedding_bag": _embedding_bag,
    "gelu": _gelu,
    "elu": _elu(False),
    "elu_": _elu(True),
    "hardtanh": _functional_one("hardtanh", ("min_val", "max_val")),
    "hardtanh_": _functional_one("hardtanh", ("min_val", "max_val"), inplace=True),
    "hardsigmoid": _functional_one("hardsigmoid"),
    "hardsigmoid_": _functional_one("hardsigmoid", inplace=True),
    "hardswish": _functional_one("hardswish"),
    "hardswish_": _functional_one("hardswish", inplace=True),
    "relu6": _functional_one("relu6"),
    "relu6_": _functional_one("relu6", inplace=True),
    "silu": _functional_one("silu"),
    "silu_": _functional_one("silu", inplace=True),
    "mish": _functional_one("mish"),
    "mish_": _functional_one("mish", inplace=True),
    "log_sigmoid": _functional_one("logsigmoid"),
    "leaky_relu": _functional_one("leaky_relu", ("negative_slope",)),
    "leaky_relu_": _functional_one("leaky_relu", ("negative_slope",), inplace=True),
    "softplus": _functional_one("softplus", ("beta", "threshold")),
    "softshrink": _functional_one("softshrink", ("lambd",)),
    "glu": _functional_one("glu", ("dim",)),
    "one_hot": _functional_one("one_hot", ("num_classes",)),
    "__interpolate": lambda input, *args, **kwargs: _functional().interpolate(input, *args, **kwargs),
    "im2col": _functional_one("unfold", ("kernel_size", "dilation", "padding", "stride")),
    "col2im": _functional_one("fold", ("output_size", "kernel_size", "dilation", "padding", "stride")),
    "linear": lambda input, weight, bias=None: _functional().linear(input, weight, bias),
    "scaled_dot_product_attention": _attention,
    "pad": _any_pad,
    "constant_pad_nd": _constant_pad,
    "_pack_padded_sequence": _packed,
    "_pad_packed_sequence": _unpacked,
    "_pad_enum": lambda value, padding, mode, fill=None: _any_pad(value, padding, _PADDINGS[mode], fill),
    "_pad_circular": _pad("circular"),
    "pad_sequence": _pad_sequence,
    "rrelu_with_noise": lambda value, noise, low=1 / 8, high=1 / 3, training=False, *_: _functional().rrelu(
        value, low, high, training
    ),
    "adaptive_avg_pool1d": _adaptive("adaptive_avg_pool1d"),
    "adaptive_avg_pool2d": _adaptive("adaptive_avg_pool2d"),
    "adaptive_avg_pool3d": _adaptive("adaptive_avg_pool3d"),
    **{f"adaptive_max_pool{n}d": _adaptive(f"adaptive_max_pool{n}d", return_indices=True) for n in (1, 2, 3)},
    **{f"max_pool{n}d": _pool(f"max_pool{n}d", _MAX) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _pool(f"max_pool{n}d", _MAX, return_indices=True) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _pool(f"avg_pool{n}d", _AVG) for n in (1, 2, 3)},
    **{f"reflection_pad{n}d": _pad("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _pad("replicate") for n in (1, 2, 3)},
    "upsample_nearest1d": _upsample("nearest", 1),
    "upsample_nearest2d": _upsample("nearest", 2),
    "upsample_nearest3d": _upsample("nearest", 3),
    "_upsample_nearest_exact1d": _upsample("nearest-exact", 1),
    "_upsample_nearest_exact2d": _upsample("nearest-exact", 2),
    "_upsample_nearest_exact3d": _upsample("nearest-exact", 3),
    "upsample_linear1d": _upsample("linear", 1),
    "upsample_bilinear2d": _upsample("bilinear", 2),
    "upsample_bicubic2d": _upsample("bicubic", 2),
    "upsample_trilinear3d": _upsample("trilinear", 3),
}
"""By the operator's name without `aten::`."""
