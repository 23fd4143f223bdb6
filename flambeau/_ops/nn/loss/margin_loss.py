"""Losses of scores that are to be apart by a margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.backend import as_array, read
from ...._core.dtype import LEGACY_NAMES, float32, float64, int64
from ...._core.reduction import MEAN, NONE
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.axes import LOSS
from ...._dispatch.compiled_body import pointwise
from ...._dispatch.dispatch import Array, primitive, several
from ...._dispatch.gradients.undifferentiable import no_derivative, refuse_gradients
from ...._dispatch.host_read import check
from ...._dispatch.public.registry import public
from ...index.masked import where
from ...pointwise.activation import logsigmoid
from ...shape.named_shapes import common_shape
from .common import mean_per_element, reduce_losses, reduced_array, reduction_number

# ----- yes or no ----------------------------------------------------------------------------------------------------


def _soft_margin_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return mean_per_element(grad, reduction, self.numel()) * -target * (-target * self).sigmoid()


@primitive("SoftMarginLossBackward0", axes=LOSS, self=_soft_margin_gradient)
@in_single
def _soft_margin_loss(self: Array, target: Array, reduction: int) -> Array:
    return reduced_array(as_array(_soft_margin(self, target)), reduction)


@pointwise
def _soft_margin(x: Array, target: Array) -> Array:
    return np.log1p(np.exp(-target * x))


@public("nn.functional.soft_margin_loss", function=False, method=False, autocast=FULL)
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), for targets of 1 and -1."""
    number = reduction_number(reduction, size_average, reduce)
    refuse_gradients("soft_margin_loss", target=target)
    if common_shape((input, target)) != input._array.shape:
        raise RuntimeError(
            f"output with shape {list(input._array.shape)} doesn't match the broadcast shape: target has "
            f"{list(target._array.shape)}"
        )
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {LEGACY_NAMES[input.dtype]}")
    return _soft_margin_loss(input, target.to(input.dtype), number)


@public("nn.functional.multilabel_soft_margin_loss", function=False, method=False)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor | float,
    weight: Tensor | float | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`binary_cross_entropy_with_logits`, averaged over the classes, the last dimension."""
    number = reduction_number(reduction, size_average, reduce)
    goal = target
    losses = -(goal * logsigmoid(input) + (1 - goal) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    classes = input.dim() - 1  # the target may have more dimensions
    return reduce_losses(losses.sum(classes) / input.size(classes), number)


@public(method=False, autocast=FULL)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = NONE) -> Tensor:
    """`input` where the target is 1, and max(0, margin - input) where it is -1."""
    goal = target
    apart = where(goal != 1, (margin - input).clamp_min(0), 0.0)
    return reduce_losses(apart + where(goal != -1, input, 0.0), reduction)


@public("nn.functional.hinge_embedding_loss", function=False, method=False, name="hinge_embedding_loss", autocast=FULL)
def _functional_hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where the target is 1, and max(0, margin - input) where it is -1."""
    return hinge_embedding_loss(input, target, margin, reduction_number(reduction, size_average, reduce))


@public(method=False, autocast=FULL)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = NONE
) -> Tensor:
    """max(0, margin - target * (input1 - input2)): which of two is to be the larger one."""
    losses = -target * (input1 - input2) + margin
    return reduce_losses(losses.clamp_min(0), reduction)


@public("nn.functional.margin_ranking_loss", function=False, method=False, name="margin_ranking_loss", autocast=FULL)
def _functional_margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)): which of two is to be the larger one."""
    number = reduction_number(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return margin_ranking_loss(input1, input2, target, margin, number)


# ----- one of many --------------------------------------------------------------------------------------------------


def _check_scores(input: Tensor, kernel: str) -> tuple[int, int]:
    """The sizes of a batch of scores; vectors are a batch of one."""
    shape = input._array.shape
    if len(shape) > 2 or (shape and not shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )
    if input.dtype not in (float32, float64):
        raise NotImplementedError(f'"{kernel}" not implemented for {LEGACY_NAMES[input.dtype]!r}')
    return (shape[0] if len(shape) == 2 else 1), (shape[-1] if shape else 1)


def _check_labels(target: Tensor) -> None:
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {LEGACY_NAMES[target.dtype]}")


def _as_rows(array: Array) -> Array:
    return array if array.ndim == 2 else array.reshape(1, -1)


def _gradient_of_rows(grad: Array, reduction: int, rows: int) -> Array:
    """The gradient of each row's loss."""
    return (grad / max(rows, 1) if reduction == MEAN else grad).reshape(-1, 1)


def _above_zero(short: Array) -> Array:
    """`short` where it is positive, elsewhere zero: a score that is NaN violates nothing."""
    return np.where(short > 0, short, short.dtype.type(0))


def _violations(scores: Array, target: Array, margin: float) -> Array:
    """By how much each score comes too near to that of the target; nothing for the target itself."""
    labels = target.reshape(-1, 1)
    short = _above_zero(scores.dtype.type(margin) - np.take_along_axis(scores, labels, 1) + scores)
    np.put_along_axis(short, labels, 0, 1)
    return short


_SECOND = no_derivative("multi_margin_loss_backward")


@primitive("NotImplemented", self=_SECOND, input=_SECOND)
def _multi_margin_backward(
    self: Array, input: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: int
) -> Array:
    short = _violations(_as_rows(input), target, margin)
    slopes = (short > 0).astype(input.dtype) if p == 1 else 2 * short
    if weight is not None:
        slopes *= weight[target].reshape(-1, 1)
    slopes /= short.shape[1]
    np.put_along_axis(slopes, target.reshape(-1, 1), -slopes.sum(1, keepdims=True), 1)
    return (slopes * _gradient_of_rows(self, reduction, len(short))).reshape(input.shape)


def _multi_margin_gradient(
    grad: Tensor, self: Tensor, target: Tensor, p: int, margin: float, weight: Tensor, reduction: int
) -> Tensor:
    return _multi_margin_backward(grad, self, target, p, margin, weight, reduction)


@primitive("MultiMarginLossBackward0", self=_multi_margin_gradient)
def _multi_margin_loss(
    self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: int
) -> Array:
    short = _violations(_as_rows(self), target, margin)
    losses = (short if p == 1 else short * short).sum(1) / self.dtype.type(short.shape[1])
    if weight is not None:
        losses = losses * weight[target.reshape(-1)]
    if not losses.size and reduction != NONE:
        return np.zeros((), self.dtype, like=self)
    return reduced_array(losses.reshape(target.shape), reduction)


@public("nn.functional.multi_margin_loss", function=False, method=False, autocast=FULL)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of max(0, margin - score of the target + score) ** p."""
    number = reduction_number(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got {list(weight.shape)}")
    refuse_gradients("multi_margin_loss", weight=weight)
    batch, classes = _check_scores(input, "multi_margin_loss_cpu_kernel")
    if target.dim() > 1 or target.numel() != batch:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{batch}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_labels(target)
    if weight is not None and weight.dtype is not input.dtype:
        found = LEGACY_NAMES[weight.dtype]
        raise RuntimeError(f"expected scalar type {LEGACY_NAMES[input.dtype]} but found {found} for weight")
    _check_classes(target, classes)
    return _multi_margin_loss(input, target, p, margin, weight, number)


@check("check_classes")
def _check_classes(target: Array, classes: int) -> None:
    if read(np.any((target < 0) | (target >= classes))):
        raise RuntimeError(f"target out of range: there are {classes} classes")


@check("check_lists_of_classes")
def _check_lists_of_classes(target: Array, classes: int) -> None:
    if read(np.any((target < -1) | (target >= classes))):
        raise RuntimeError(f"argument #2 'target' is out of range: there are {classes} classes")


def _marked(target: Array) -> Array:
    """The labels of each row up to the first -1: which of them count."""
    return np.logical_and.accumulate(target >= 0, axis=1)


def _as_flags(target: Array) -> Array:
    """For each class whether it is one of its row's labels."""
    flags = np.zeros(target.shape, bool, like=target)
    rows, places = np.nonzero(_marked(target))
    flags[rows, target[rows, places]] = True
    return flags


def _label_violations(scores: Array, target: Array, flags: Array) -> Array:
    """By how much the score of each class (last dimension) that is no label comes too near to that of each label."""
    marked = _marked(target)
    own = np.take_along_axis(scores, np.where(marked, target, 0), 1)
    short = _above_zero(1 - own[:, :, None] + scores[:, None, :])
    return np.where(marked[:, :, None] & ~flags[:, None, :], short, short.dtype.type(0))


_SECOND_OF_MANY = no_derivative("multilabel_margin_loss_backward")


@primitive("NotImplemented", self=_SECOND_OF_MANY, input=_SECOND_OF_MANY)
def _multilabel_margin_backward(self: Array, input: Array, target: Array, reduction: int, is_target: Array) -> Array:
    scores, labels = _as_rows(input), _as_rows(target)
    slopes = (_label_violations(scores, labels, _as_rows(is_target) != 0) > 0).astype(input.dtype)
    rows, places = np.nonzero(_marked(labels))
    result = slopes.sum(1)
    np.add.at(result, (rows, labels[rows, places]), -slopes.sum(2)[rows, places])
    result *= _gradient_of_rows(self, reduction, len(scores)) / scores.shape[1]
    return result.reshape(input.shape)


def _multilabel_margin_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int, is_target: Any) -> Tensor:
    return _multilabel_margin_backward(grad, self, target, reduction, is_target)


def _multilabel_shapes(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    loss = np.empty_like(self, shape=self.shape[:-1] if reduction == NONE else ())
    return loss, np.empty_like(self, shape=target.shape)


@several(
    "MultilabelMarginLossBackward0",
    self=_multilabel_margin_gradient,
    results=("output", "is_target"),
    shape=_multilabel_shapes,
)
def _multilabel_margin_loss(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    scores, labels = _as_rows(self), _as_rows(target)
    flags = _as_flags(labels)
    losses = _label_violations(scores, labels, flags).sum((1, 2)) / self.dtype.type(scores.shape[1])
    marks = flags.astype(self.dtype).reshape(target.shape)
    if not losses.size and reduction != NONE:
        return np.zeros((), self.dtype, like=self), marks
    return as_array(reduced_array(losses.reshape(self.shape[:-1]), reduction)), marks


@public("nn.functional.multilabel_margin_loss", function=False, method=False, autocast=FULL)
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of max(0, 1 - score of a label + score of another class), over all such pairs.

    The labels of a row of `target` are those before the first -1.
    """
    number = reduction_number(reduction, size_average, reduce)
    _, classes = _check_scores(input, "multilabel_margin_loss_forward_out_frame")
    if target.shape != input.shape and not (input.numel() == target.numel() == 1 and input.dim() < 2):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_labels(target)
    _check_lists_of_classes(target, classes)
    return _multilabel_margin_loss(input, target, number)[0]
