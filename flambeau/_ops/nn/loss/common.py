"""Loss functions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...._backends import arrays
from ...._core.backend import as_array, read
from ...._core.dtype import BOOL, COMPLEX, FLOAT, INTEGER, LEGACY_NAMES, bool_, int64, uint8
from ...._core.modes import THREAD, UNCAST
from ...._core.reduction import MEAN, NONE, REDUCTIONS, SUM
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, in_full, on, refused
from ...._dispatch.arguments.precision import in_single, refuse
from ...._dispatch.arguments.promotion import result_type_of
from ...._dispatch.axes import LOSS
from ...._dispatch.changes.inplace import check_castable
from ...._dispatch.compiled_body import pointwise, pointwise_at_any_size
from ...._dispatch.composite import composite
from ...._dispatch.dispatch import Array, primitive
from ...._dispatch.gradients.undifferentiable import refuse_gradients
from ...._dispatch.host_read import check
from ...._dispatch.public.registry import public
from ...pointwise.binary import div_number, mul_number
from ...reduce.reductions import no_kernel, total_of
from ...reduce.softmax import log_softmax
from ...shape.named_shapes import common_shape


def reduction_number(reduction: str, size_average: bool | None, reduce: bool | None) -> int:
    """`reduction` as PyTorch's nodes store it; the old flags override it, with a warning."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=5,
        )
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction: it is one of 'none', 'mean', 'sum'")
    return REDUCTIONS.index(reduction)


def reduced_array(losses: Array, reduction: int) -> Array:
    if reduction == NONE:
        return losses
    total = total_of(losses)
    return total / losses.dtype.type(losses.size) if reduction == MEAN else total


def mean_per_element(grad: Tensor, reduction: int, count: int) -> Tensor:
    """The gradient of one element's loss."""
    return grad / count if reduction == MEAN and count != 1 else grad


def reduce_losses(losses: Tensor, reduction: int) -> Tensor:
    if reduction == NONE:
        return losses
    return losses.mean() if reduction == MEAN else losses.sum()


def _reduce_weighted(losses: Any, weight: Tensor, number: int) -> Tensor:
    """Losses times their weights, reduced; a mean is one by weight."""
    weighted: Tensor = losses * weight
    return weighted.sum() / weight.expand_as(weighted).sum() if number == MEAN else reduce_losses(weighted, number)


def _matched(name: str, input: Tensor, target: Tensor, kernel: str | None = None) -> tuple[Any, Any]:
    """Input and target in a common dtype and shape; a warning where they broadcast.

    With `kernel`, the name of PyTorch's, that dtype must be one of floating point.
    """
    if input._array.shape != target._array.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=5,
        )
        common_shape((input, target))  # or an error that says where they differ
    if input.dtype is not target.dtype:
        common = result_type_of(input, target)
        if kernel == "huber":
            check_castable(common, input.dtype, name)
        input, target = input.to(common), target.to(common)
    if kernel is not None:
        refuse(kernel, input, BOOL, INTEGER, COMPLEX)
    return input, target


# ----- distances ---------------------------------------------------------------------------------------------------


def _count(self: Any, target: Any) -> int:
    return math.prod(common_shape((self, target)))


def _mse_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return mean_per_element(grad, reduction, _count(self, target)) * 2 * (self - target)


@primitive(
    "MseLossBackward0",
    axes=LOSS,
    self=_mse_gradient,
    target=lambda grad, self, target, reduction: -_mse_gradient(grad, self, target, reduction),
)
@in_single
def _mse_loss(self: Array, target: Array, reduction: int) -> Array:
    return reduced_array(as_array(_squared_distance(self, target)), reduction)


@pointwise
def _squared_distance(x: Array, y: Array) -> Array:
    return np.square(x - y)


@public("nn.functional.mse_loss", function=False, method=False, autocast=FULL)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error `(input - target) ** 2`, averaged over all elements unless `reduction` says otherwise."""
    number = reduction_number(reduction, size_average, reduce)
    input, target = _matched("mse_loss", input, target, "mse")
    if weight is not None:
        return _reduce_weighted(_mse_loss(input, target, NONE), weight, number)
    return _mse_loss(input, target, number)


@public("nn.functional.l1_loss", function=False, method=False, autocast=FULL)
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error `|input - target|`, averaged over all elements unless `reduction` says otherwise."""
    number = reduction_number(reduction, size_average, reduce)
    _matched("l1_loss", input, target)
    losses = (input - target).abs()
    return reduce_losses(losses, number) if weight is None else _reduce_weighted(losses, weight, number)


def _smooth_l1_gradient(grad: Tensor, self: Tensor, target: Tensor, beta: float, reduction: int) -> Tensor:
    distance = self - target
    slope = (distance if beta == 1 else distance / beta).clamp(-1, 1)
    return mean_per_element(grad, reduction, _count(self, target)) * slope


@primitive(
    "SmoothL1LossBackward0",
    axes=LOSS,
    self=_smooth_l1_gradient,
    target=lambda grad, self, target, beta, reduction: -_smooth_l1_gradient(grad, self, target, beta, reduction),
)
@in_single
def _smooth_l1_loss(self: Array, target: Array, reduction: int, beta: float) -> Array:
    return reduced_array(_smooth_l1(self, target, beta), reduction)


@pointwise
def _smooth_l1(x: Array, y: Array, beta: float) -> Array:
    size = np.abs(x - y)
    return np.where(size < beta, size * size * (0.5 / beta), size - 0.5 * beta)


@public("nn.functional.smooth_l1_loss", function=False, method=False, autocast=FULL)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """With d = |input - target|: `d ** 2 / (2 * beta)` where d is less than `beta`, elsewhere `d - beta / 2`."""
    number = reduction_number(reduction, size_average, reduce)
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    input, target = _matched("smooth_l1_loss", input, target, "smooth_l1")
    if beta == 0:
        return reduce_losses((input - target).abs(), number)
    return _smooth_l1_loss(input, target, number, beta if type(beta) is int else float(beta))


def _huber_gradient(grad: Tensor, self: Tensor, target: Tensor, delta: float, reduction: int) -> Tensor:
    return mean_per_element(grad, reduction, _count(self, target)) * (self - target).clamp(-delta, delta)


@primitive(
    "HuberLossBackward0",
    axes=LOSS,
    self=_huber_gradient,
    target=lambda grad, self, target, delta, reduction: -_huber_gradient(grad, self, target, delta, reduction),
)
@in_single
def _huber_loss(self: Array, target: Array, reduction: int, delta: float) -> Array:
    return reduced_array(_huber(self, target, delta), reduction)


@pointwise
def _huber(x: Array, y: Array, delta: float) -> Array:
    size = np.abs(x - y)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


@public("nn.functional.huber_loss", function=False, method=False, autocast=FULL)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """With d = |input - target|: `d ** 2 / 2` up to `delta`, beyond it the line `delta * (d - delta / 2)`."""
    number = reduction_number(reduction, None, None)
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    stored = input.dtype
    input, target = _matched("huber_loss", input, target, "huber")
    if weight is None:
        loss = _huber_loss(input, target, number, delta)
    else:
        loss = _reduce_weighted(_huber_loss(input, target, NONE, delta), weight, number)
    return loss if loss.dtype is stored else loss.to(stored)


# ----- yes or no ---------------------------------------------------------------------------------------------------

_LOWEST_LOG = -100.0
_EPSILON = 1e-12


@pointwise
def _slope_of_two(x: Array, target: Array) -> Array:
    return (x - target) / np.maximum((1 - x) * x, _EPSILON)


@composite(
    "binary_cross_entropy_slope",
    lambda x, target: _slope_of_two(x, target) if x.dtype == target.dtype and x.dtype.char in "fd" else None,
)
def _bce_slope(self: Tensor, target: Tensor) -> Tensor:
    """The derivative of an element's loss by the probability."""
    return (self - target) / ((1 - self) * self).clamp(min=_EPSILON)


def _bce_gradient(grad: Tensor, self: Tensor, target: Tensor, weight: Tensor, reduction: int) -> Tensor:
    gradient = mean_per_element(grad, reduction, self.numel()) * _bce_slope(self, target)
    return gradient if weight is None else gradient * weight


def _bce_target_gradient(grad: Tensor, self: Tensor, weight: Tensor, reduction: int) -> Tensor:
    gradient = mean_per_element(grad, reduction, self.numel()) * ((1 - self).log() - self.log())
    return gradient if weight is None else gradient * weight


@primitive("BinaryCrossEntropyBackward0", axes=LOSS, self=_bce_gradient, target=_bce_target_gradient)
@in_single
def _binary_cross_entropy(self: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    losses = as_array(_cross_entropy_of_two(self, target))
    return reduced_array(losses if weight is None else losses * weight, reduction)


@pointwise_at_any_size
def _cross_entropy_of_two(x: Array, target: Array) -> Array:
    yes, no = np.maximum(np.log(x), _LOWEST_LOG), np.maximum(np.log1p(-x), _LOWEST_LOG)
    return (target - 1) * no - target * yes


@check("check_probabilities")
def _check_probabilities(input: Array, name: str) -> None:
    found = arrays.bounds(input)
    if found is not None:
        are_chances = found[0].item() >= 0 and found[1].item() <= 1
    else:
        are_chances = not input.size or read(np.logical_and.reduce((input >= 0) & (input <= 1), None))
    if not are_chances:
        raise RuntimeError(f"all elements of {name} should be between 0 and 1")


@public("nn.functional.binary_cross_entropy", function=False, method=False, autocast=on(cpu=FULL, cuda=refused))
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input))."""
    number = reduction_number(reduction, size_average, reduce)
    if input._array.shape != target._array.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if input.dtype is not target.dtype:
        raise RuntimeError(f"Found dtype {LEGACY_NAMES[target.dtype]} but expected {LEGACY_NAMES[input.dtype]}")
    _check_probabilities(input, "input")
    _check_probabilities(target, "target")
    if weight is not None:
        refuse_gradients("binary_cross_entropy", weight=weight)
        weight = weight.expand(input._array.shape)
    return _binary_cross_entropy(input, target, weight, number)


def _logits_gradient(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor, pos_weight: Any, reduction: int
) -> Tensor:
    if pos_weight is None:
        slope = self.sigmoid() - target
    else:
        positive = pos_weight * target
        slope = (positive + 1 - target) * self.sigmoid() - positive
    gradient = mean_per_element(grad, reduction, self.numel()) * slope
    return gradient if weight is None else gradient * weight


def _logits_target_gradient(grad: Tensor, self: Tensor, weight: Tensor, pos_weight: Any, reduction: int) -> Tensor:
    from ...pointwise.activation import logsigmoid

    slope = -self if pos_weight is None else logsigmoid(-self) - pos_weight * logsigmoid(self)
    gradient = mean_per_element(grad, reduction, self.numel()) * slope
    return gradient if weight is None else gradient * weight


@pointwise
def _softplus_of_negative(logits: Array) -> Array:
    return np.log1p(np.exp(-np.abs(logits))) + np.maximum(-logits, 0)


@primitive("BinaryCrossEntropyWithLogitsBackward0", axes=LOSS, self=_logits_gradient, target=_logits_target_gradient)
@in_single
def _with_logits(self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int) -> Array:
    softplus_of_negative = _softplus_of_negative(self)
    if pos_weight is not None:
        softplus_of_negative = softplus_of_negative * ((pos_weight - 1) * target + 1)
    losses = as_array((1 - target) * self + softplus_of_negative)
    return reduced_array(losses if weight is None else losses * weight, reduction)


@public(method=False, name="binary_cross_entropy_with_logits", autocast=FULL)
def _bce_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = NONE,
) -> Tensor:
    """`binary_cross_entropy` of `sigmoid(input)`, computed in one go, in the dtype of `target`."""
    refuse("log_sigmoid", input, BOOL, INTEGER, COMPLEX)
    if target.dtype is bool_:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported: targets are numbers between 0 and 1, "
            "such as target.float()"
        )
    name = "binary_cross_entropy_with_logits"
    parts: list[Any] = [input, weight, pos_weight]
    for number, each in enumerate(parts):
        if each is not None and each.dtype is not target.dtype:
            check_castable(each.dtype, target.dtype, name)
            parts[number] = each.to(target.dtype)
    logits, weight, pos_weight = parts
    if pos_weight is not None:
        common_shape((pos_weight, target))  # refuses those that do not go together
    return _with_logits(logits, target, weight, pos_weight, reduction)


@public("nn.functional.binary_cross_entropy_with_logits", function=False, method=False, autocast=FULL)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of `sigmoid(input)`, computed in one go."""
    number = reduction_number(reduction, size_average, reduce)
    if input._array.shape != target._array.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    refuse_gradients("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    return _bce_with_logits(input, target, weight, pos_weight, number)


# ----- one of many -------------------------------------------------------------------------------------------------


def _class_weights(target: Array, weight: Array | None, ignore_index: int, dtype: Any) -> tuple[Array, Array]:
    """Targets with ignored ones replaced by 0, and the weight of each."""
    kept = target != ignore_index
    safe = np.where(kept, target, 0)
    if weight is None:
        return safe, kept.astype(dtype)
    return safe, np.where(kept, weight[safe], dtype.type(0)) if weight.size else kept.astype(dtype)


def _picked(array: Array, target: Array) -> Array:
    if array.ndim == 1:
        return array[target]
    if array.ndim == 2:
        return array[np.arange(len(array), like=array), target]
    return np.take_along_axis(array, np.expand_dims(target, 1), 1).squeeze(1)


def _check_targets(target: Array, classes: int, ignore_index: int) -> None:
    # Negative numbers are large ones if they are read without a sign: one comparison finds all that may be wrong.
    if read((target.view(f"u{target.itemsize}") >= classes).any()):
        wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
        if read(wrong.any()):
            raise IndexError(f"Target {target[wrong].flat[0]} is out of bounds: there are {classes} classes.")


def _nll_kernel(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Array:
    _check_targets(target, self.shape[min(self.ndim - 1, 1)], ignore_index)
    if weight is None and target.size and not read((target == ignore_index).any()):
        losses = as_array(-_picked(self, target))
        if reduction == NONE:
            return losses
        total = total_of(losses)
        return total / self.dtype.type(target.size) if reduction == MEAN else total
    safe, weights = _class_weights(target, weight, ignore_index, self.dtype)
    losses = as_array(-_picked(self, safe) * weights) if target.size else np.empty(target.shape, self.dtype, like=self)
    if reduction == NONE:
        return np.where(weights == 0, self.dtype.type(0), losses) if weight is None else losses
    total = total_of(losses)
    return total / np.add.reduce(weights, axis=None) if reduction == MEAN else total


@primitive(
    "NllLossBackwardBackward0",
    self=lambda grad, target, weight, reduction, ignore_index: _nll_any(grad, target, weight, reduction, ignore_index),
)
@in_single
def _nll_backward(
    self: Array, input: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> Array:
    safe, weights = _class_weights(target, weight, ignore_index, input.dtype)
    if reduction == MEAN:
        weights = weights / np.add.reduce(weights, axis=None)
    result = np.zeros(input.shape, input.dtype, like=self)
    if target.size:
        values = np.where(target != ignore_index, -self * weights, self.dtype.type(0))
        if input.ndim == 1:
            result[safe] = values
        elif input.ndim == 2:
            result[np.arange(len(result), like=self), safe] = values
        else:
            np.put_along_axis(result, np.expand_dims(safe, 1), np.expand_dims(values, 1), 1)
    return result


def _nll_gradient(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> Tensor:
    return _nll_backward(grad, self, target, weight, reduction, ignore_index)


@primitive("NllLossBackward0", self=_nll_gradient, fuses=False)
@in_single
def _nll_loss(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Array:
    return _nll_kernel(self, target, weight, reduction, ignore_index)


@primitive("NllLoss2DBackward0", self=_nll_gradient, fuses=False)
@in_single
def _nll_loss2d(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Array:
    return _nll_kernel(self, target, weight, reduction, ignore_index)


def _nll_any(input: Tensor, target: Any, weight: Any, reduction: int, ignore_index: int) -> Tensor:
    dims = input._array.ndim
    if dims <= 2:
        return _nll_loss(input, target, weight, reduction, ignore_index)
    if dims == 4:
        return _nll_loss2d(input, target, weight, reduction, ignore_index)
    batch, classes = input.shape[:2]
    rest = input.numel() // max(batch * classes, 1)
    flat = input.reshape(batch, classes, 1, rest), target.reshape(batch, 1, rest)
    losses = _nll_loss2d(*flat, weight, reduction, ignore_index)
    return losses.view(target.shape) if reduction == NONE else losses


def _check_classes(input: Tensor, target: Tensor, weight: Tensor | None, kernel: str = "log_softmax_kernel") -> None:
    shape, given = input._array.shape, target._array.shape
    classes = shape[0] if len(shape) == 1 else shape[1]
    if len(shape) == 1:
        if len(given) > 1:
            raise RuntimeError(
                f"0D or 1D target tensor expected, multi-target not supported: it has shape {list(given)}"
            )
        if given not in ((), (1,)):
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {given[0]}")
    elif not given or shape[0] != given[0]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({given[0] if given else 'none'})."
        )
    elif given != (shape[0], *shape[2:]):
        if len(shape) == 2:
            raise RuntimeError(
                f"0D or 1D target tensor expected, multi-target not supported: it has shape {list(given)}"
            )
        raise RuntimeError(
            f"Expected target size {[shape[0], *shape[2:]]}, got {list(given)}: it is the shape "
            f"of input {list(shape)} without its class dimension"
        )
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    if weight is not None:
        refuse_gradients("nll_loss_forward" if len(shape) < 3 else "nll_loss2d_forward", weight=weight)
    if target.dtype not in (int64, uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {LEGACY_NAMES[target.dtype]}: expected scalar type "
            "Long. Class indices are int64; convert them with .long()"
        )
    if not input.dtype.is_floating_point:
        raise no_kernel(kernel, input)


def _check_precision(logs: Tensor, weight: Tensor | None) -> None:
    if weight is not None and weight.dtype is not logs.dtype:
        raise RuntimeError(
            f"expected scalar type {LEGACY_NAMES[logs.dtype]} but found {LEGACY_NAMES[weight.dtype]}: weight has the "
            "dtype of input"
        )


@public("nn.functional.nll_loss", function=False, method=False, autocast=FULL)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood `-input[n, target[n]]`, where `input` holds log-probabilities of the classes."""
    number = reduction_number(reduction, size_average, reduce)
    if not input._array.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    _check_classes(input, target, weight, "nll_loss_out_frame")
    _check_precision(input, weight)
    return _nll_any(input, target, weight, number, ignore_index)


@public("nn.functional.cross_entropy", function=False, method=False, autocast=on(cpu=FULL))
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of scores and right classes: `-log(softmax(input))[n, target[n]]`, averaged over the batch.

    Targets are the numbers of classes, or a probability for each class.
    """
    number = reduction_number(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    class_dim = 0 if input._array.ndim == 1 else 1
    if input._array.shape == target._array.shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {LEGACY_NAMES[target.dtype]}: "
                "a target of input's shape holds probabilities, one of class indices has no class dimension"
            )
        if ignore_index >= 0:
            raise RuntimeError(f"ignore_index is not supported for floating point target, got {ignore_index}")
        return _soft_cross_entropy(input, target, weight, number, label_smoothing, class_dim)
    if not input._array.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1): input has no classes")
    _check_classes(input, target, weight)
    if label_smoothing:
        logs = log_softmax(input, class_dim)
        return _smoothed(logs, target, weight, number, ignore_index, label_smoothing, class_dim)
    if THREAD.modes.autocast is not UNCAST:  # on a GPU
        return _class_losses(log_softmax(input, class_dim), target, weight, number, ignore_index)
    _check_precision(input, weight)
    return _class_cross_entropy(input, target, weight, number, ignore_index)


@composite("cross_entropy")
def _class_cross_entropy(input: Tensor, target: Any, weight: Any, reduction: int, ignore_index: int) -> Tensor:
    return _nll_any(log_softmax(input, min(input._array.ndim - 1, 1)), target, weight, reduction, ignore_index)


def _class_losses(logs: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Tensor:
    """The losses of log-probabilities, which have the precision of the scores: under autocast on a GPU in float32."""
    logs, weight = in_full(logs), in_full(weight)
    _check_precision(logs, weight)
    return _nll_any(logs, target, weight, reduction, ignore_index)


def _along_classes(weight: Tensor, input: Tensor, class_dim: int) -> Tensor:
    return weight.reshape([-1 if position == class_dim else 1 for position in range(input.dim())])


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float, class_dim: int
) -> Tensor:
    classes = input.shape[class_dim]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    losses: Tensor = log_softmax(input, class_dim) * target
    if weight is not None:
        losses = losses * _along_classes(weight, input, class_dim)
    losses = in_full(losses)
    if reduction == NONE:
        return -losses.sum(class_dim)
    total = -losses.sum()
    return div_number(total, input.numel() // classes) if reduction == MEAN else total


def _smoothed(
    logs: Any, target: Any, weight: Any, reduction: int, ignore_index: int, label_smoothing: float, class_dim: int
) -> Tensor:
    exact = _class_losses(logs, target, weight, reduction, ignore_index)
    even = -in_full(logs if weight is None else logs * _along_classes(weight, logs, class_dim)).sum(class_dim)
    ignored = target == ignore_index
    even = even.masked_fill(ignored, 0.0)
    if reduction == MEAN:
        if weight is None:
            even = even.sum() / (~ignored).sum()
        else:
            even = even.sum() / weight[target.masked_fill(ignored, 0).flatten()].masked_fill(ignored.flatten(), 0).sum()
    elif reduction == SUM:
        even = even.sum()
    classes = logs.shape[class_dim]
    return mul_number(exact, 1 - label_smoothing) + mul_number(even, label_smoothing / classes)


@public(method=False, name="kl_div", autocast=FULL)
def _kl_div(input: Tensor, target: Tensor, reduction: int = NONE, *, log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of distributions; `input` holds log-probabilities."""
    if COMPLEX in (input._kind.dtype.category, target._kind.dtype.category):
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if min(input._kind.dtype.category, target._kind.dtype.category) < FLOAT:
        raise RuntimeError(f"kl_div: Integral inputs not supported. Got {input.dtype} and {target.dtype}")
    goal = target
    losses = goal.exp() * (goal - input) if log_target else goal.xlogy(goal) - goal * input
    return reduce_losses(losses, reduction)


@public("nn.functional.kl_div", function=False, method=False, autocast=FULL)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of distributions; `input` holds log-probabilities."""
    if size_average is not None or reduce is not None:
        number, batch_mean = reduction_number(reduction, size_average, reduce), False
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' "
                "divides only by the batch size, and aligns with the KL div math definition.",
                UserWarning,
                stacklevel=3,
            )
        batch_mean = reduction == "batchmean"
        number = SUM if batch_mean else reduction_number(reduction, None, None)
    result = _kl_div(input, target, number, log_target=log_target)
    return result / input.size()[0] if batch_mean and input.dim() else result
