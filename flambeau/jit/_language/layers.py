"""Operators of neural networks: losses, normalisations, pooling, activations, in the order of PyTorch's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from ..._core.reduction import REDUCTIONS
from ..._core.tensor import Tensor
from ..._dispatch.public.operator_forms import OperatorForm, forms_of_functional
from ..._dispatch.public.registry import function_named
from ...nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence


@functools.cache
def _torch() -> Any:
    return torch


@functools.cache
def _functional() -> Any:
    return torch.nn.functional


def _reduction(number: Any) -> str:
    return REDUCTIONS[number]


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


def _of_function(form: OperatorForm, **fixed: bool) -> Callable[..., Any]:
    """The function that is an operator, called with the operator's arguments."""
    by_name = {each.name: each for each in form.arguments}

    def compute(*args: Any, **kwargs: Any) -> Any:
        given = {each.name: value for each, value in zip(form.arguments, args, strict=False)} | kwargs
        given.pop("cudnn_enabled", None)
        taken = {name: by_name[name].as_taken(value) if name in by_name else value for name, value in given.items()}
        return form.function(**taken, **fixed)

    return compute


def _functional_one(name: str, *order: str) -> Callable[..., Any]:
    """A function of `nn.functional` whose arguments have other positions there."""

    def compute(input: Tensor, *args: Any) -> Any:
        given = dict(zip(order, args, strict=False))
        return getattr(_functional(), name)(input, **{key: value for key, value in given.items() if value is not None})

    return compute


def _pad(mode: str) -> Callable[..., Any]:
    return lambda input, padding: _functional().pad(input, padding, mode=mode)


def _constant_pad(input: Tensor, padding: Any, value: Any = 0) -> Any:
    return function_named("", "constant_pad_nd")(input, padding, value)  # `pad` takes real numbers alone


def _adaptive(name: str, **fixed: Any) -> Callable[..., Any]:
    return lambda input, size: getattr(_functional(), name)(input, size, **fixed)


def _elu(in_place: bool) -> Callable[..., Any]:
    def compute(value: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
        from ..._ops.pointwise.activation import elu_with_scales

        return elu_with_scales(value, in_place, alpha, scale, input_scale)

    return compute


def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int = 0, reduction: int = 1, zero: Any = False,
         ) -> Any:  # fmt: skip
    return _functional().ctc_loss(log_probs, targets, inputs, lengths, blank, _reduction(reduction), zero)


def _packed(input: Any, lengths: Any, batch_first: bool) -> Any:
    return tuple(pack_padded_sequence(input, lengths, batch_first)[:2])


def _unpacked(data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: int) -> Any:
    sequence = PackedSequence(data, batch_sizes, None, None)
    return pad_packed_sequence(sequence, batch_first, padding_value, None if total_length <= 0 else total_length)


_PADDINGS = ("reflect", "replicate", "circular", "constant")


def _pad_sequence(values: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
                  ) -> Any:  # fmt: skip
    return pad_sequence(values, batch_first, padding_value, padding_side)


LAYERS: dict[str, Callable[..., Any]] = {
    **{
        form.operator_for(in_place): _of_function(form, **({"inplace": True} if in_place else {}))
        for form in forms_of_functional().values()
        for in_place in (False, True)
        if form.operator not in ("softmax", "log_softmax", "feature_dropout") and (not in_place or form.has_in_place)
    },
    "_convolution": _convolution,
    "nll_loss": _of_function(forms_of_functional()["nll_loss"]),
    "nll_loss2d": _of_function(forms_of_functional()["nll_loss"]),
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
    "elu": _elu(False),
    "elu_": _elu(True),
    "one_hot": _functional_one("one_hot", "num_classes"),
    "__interpolate": lambda input, *args, **kwargs: _functional().interpolate(input, *args, **kwargs),
    "im2col": _functional_one("unfold", "kernel_size", "dilation", "padding", "stride"),
    "col2im": _functional_one("fold", "output_size", "kernel_size", "dilation", "padding", "stride"),
    "constant_pad_nd": _constant_pad,
    "_pack_padded_sequence": _packed,
    "_pad_packed_sequence": _unpacked,
    "_pad_enum": lambda value, padding, mode, fill=None: _functional().pad(value, padding, _PADDINGS[mode], fill),
    "_pad_circular": _pad("circular"),
    "pad_sequence": _pad_sequence,
    **{f"adaptive_max_pool{n}d": _adaptive(f"adaptive_max_pool{n}d", return_indices=True) for n in (1, 2, 3)},
    **{
        f"max_pool{n}d_with_indices": _of_function(forms_of_functional()[f"max_pool{n}d"], return_indices=True)
        for n in (1, 2, 3)
    },
    **{f"reflection_pad{n}d": _pad("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _pad("replicate") for n in (1, 2, 3)},
}
"""By the operator's name without `aten::`."""
