"""Cross entropy of a linear layer's outputs, in one piece or, to save memory, in chunks of the batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...._backends import arrays
from ...._core.backend import as_array, read
from ...._core.dtype import bfloat16, float16, float32, int64
from ...._core.modes import Ruled
from ...._core.reduction import MEAN, NONE, REDUCTIONS
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import RULED
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.dispatch import Array, primitive, several
from ...._dispatch.host_read import check
from ...._dispatch.public.registry import public
from ...linalg.linear import linear
from ...reduce.reductions import reduced
from .common import cross_entropy, reduction_number

_linear: Callable[..., Tensor] = Ruled(RULED["nn.functional.linear"], linear)
_cross_entropy: Callable[..., Tensor] = Ruled(RULED["nn.functional.cross_entropy"], cross_entropy)


def _chunk_size(options: Any, rows: int, features: int, classes: int) -> int:
    """How many rows make a chunk, under a `LinearCrossEntropyOptions`."""
    if options.batch_chunk_size is not None:
        return int(options.batch_chunk_size)
    method = "aspect_ratio:2" if options.chunking_method in (None, "auto") else options.chunking_method
    ratio = max(int(method.partition(":")[2] or 1), 1)
    wanted = -(-rows // (ratio * -(-classes // max(features, 1))))
    return max(min(rows, 1 << max(wanted - 1, 0).bit_length()), 1)


# ----- in chunks ------------------------------------------------------------------------------------------------------


def _row_weights(target: Array, weight: Array | None, ignore_index: int, kind: Any) -> tuple[Array, Array]:
    """The class of each row, 0 where it is ignored, and the weight of its loss."""
    kept = target != ignore_index
    safe = np.where(kept, target, 0)
    return safe, kept.astype(kind) if weight is None else np.where(kept, weight[safe], kind.type(0))


def _log_probabilities(
    input: Array, linear_weight: Array, bias: Array | None, chunk: int
) -> Iterator[tuple[slice, Array]]:
    """The log-probabilities of the classes, for one chunk of rows after the other."""
    for start in range(0, len(input), chunk):
        rows = slice(start, start + chunk)
        logits = arrays.matmul(input[rows], linear_weight.T)
        if bias is not None:
            logits += bias
        logits -= logits.max(1, keepdims=True)
        logits -= np.log(reduced(np.add, np.exp(logits), (1,), True))
        yield rows, logits


def _losses(
    input: Array,
    linear_weight: Array,
    target: Array,
    bias: Array | None,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    chunk: int,
) -> Array:
    classes, weights = _row_weights(target, weight, ignore_index, input.dtype)
    losses = np.empty(len(input), input.dtype, like=input)
    for rows, logs in _log_probabilities(input, linear_weight, bias, chunk):
        losses[rows] = -np.take_along_axis(logs, classes[rows, None], 1)[:, 0] * weights[rows]
    losses[weights == 0] = 0
    if reduction == NONE:
        return losses
    return as_array(losses.sum() / weights.sum() if reduction == MEAN else losses.sum())


def _new_losses(
    input: Array, linear_weight: Array, target: Array, bias: Any, weight: Any, reduction: int, *_: int
) -> Array:
    """The shape rule of losses."""
    return np.empty(len(input) if reduction == NONE else (), input.dtype, like=input)


def _new_gradients(grad: Array, input: Array, linear_weight: Array, *_: Any) -> tuple[Array, Array, Array]:
    """The shape rule of gradients."""
    shapes = input.shape, linear_weight.shape, linear_weight.shape[:1]
    of_input, of_weight, of_bias = [np.empty(shape, input.dtype, like=grad) for shape in shapes]
    return of_input, of_weight, of_bias


@several(None, shape=_new_gradients)
@in_single
def _chunked_backward(
    grad: Array,
    input: Array,
    linear_weight: Array,
    target: Array,
    bias: Array | None,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    chunk: int,
) -> tuple[Array, Array, Array]:
    classes, weights = _row_weights(target, weight, ignore_index, input.dtype)
    factors = weights * grad / (weights.sum() if reduction == MEAN else 1)
    of_input = np.empty(input.shape, input.dtype, like=grad)
    of_weight = np.zeros(linear_weight.shape, input.dtype, like=grad)
    of_bias = np.zeros(len(linear_weight), input.dtype, like=grad)
    for rows, logs in _log_probabilities(input, linear_weight, bias, chunk):
        slopes = np.exp(logs)
        np.put_along_axis(slopes, classes[rows, None], np.take_along_axis(slopes, classes[rows, None], 1) - 1, 1)
        slopes *= factors[rows, None]
        of_input[rows] = arrays.matmul(slopes, linear_weight)
        of_weight += arrays.matmul(slopes.T, input[rows])
        of_bias += slopes.sum(0)
    return of_input, of_weight, of_bias


def _gradients(
    grads: Any,
    needed: tuple[bool, ...],
    input: Any,
    linear_weight: Any,
    target: Any,
    linear_bias: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    chunk: int,
) -> Any:
    of_rows = grads[0] if reduction == NONE else grads[0].new_ones(())
    found: Any = _chunked_backward(
        of_rows, input, linear_weight, target, linear_bias, weight, reduction, ignore_index, chunk
    )
    if reduction != NONE:
        found = [each * grads[0] for each in found]
    return [each if wanted else None for each, wanted in zip(found, needed, strict=True)]


_INPUTS = ("input", "linear_weight", "linear_bias")
_NODE = "GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked"


def _chunked_op(op_name: str, node: str) -> Callable[..., Tensor]:
    """The op in chunks of rows; PyTorch names its node by whether the losses are reduced."""

    @primitive(f"{_NODE}{node}", op_name=op_name, joint=_gradients, differentiable=_INPUTS, shape=_new_losses)
    @in_single
    def chunked(
        input: Array,
        linear_weight: Array,
        target: Array,
        linear_bias: Array | None,
        weight: Array | None,
        reduction: int,
        ignore_index: int,
        chunk: int,
    ) -> Array:
        return _losses(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, chunk)

    return chunked


_chunked = _chunked_op("chunked", "_defaultBackward")
_chunked_no_reduction = _chunked_op("chunked_no_reduction", "_no_reduction_defaultBackward")


@check("check_target")
def _check_target(target: Array, ignore_index: int, classes: int) -> None:
    wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
    if read(wrong.any()):
        first = target[wrong].flat[0]
        raise RuntimeError(f"index {first} is out of bounds for dimension 1 with size {classes} (target)")


def _in_chunks(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    options: Any,
) -> Tensor:
    batched = input.dim() == 2
    if not batched:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    classes, features = linear_weight.shape
    if target.shape != input.shape[:1]:
        raise RuntimeError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size: target has shape "
            f"{list(target.shape)}"
        )
    if input.dtype is not linear_weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {input.dtype} != {linear_weight.dtype} (input and "
            "linear_weight)"
        )
    wanted = options.acc_dtype
    if wanted not in (None, input.dtype) and not (wanted is float32 and input.dtype in (float16, bfloat16)):
        raise RuntimeError(
            "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
            f"{wanted} acc_dtype and {input.dtype} inputs."
        )
    _check_target(target, ignore_index, classes)
    chunk = _chunk_size(options, input.shape[0], features, classes)
    op = _chunked_no_reduction if reduction == NONE else _chunked
    losses = op(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, chunk)
    return losses if batched else losses.squeeze(0)


# ----- the function ---------------------------------------------------------------------------------------------------


def _check(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features = input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {linear_weight.shape[-1]}, respectively"
        )
    outputs = tuple(linear_weight.shape[:-1])
    if len(outputs) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {tuple(linear_bias.shape)}")


@public("nn.functional.linear_cross_entropy", function=False, method=False)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    `linear_weight` has the shape (classes, features), or (classes, d1, ..., features) for a loss with more dimensions.
    With `options` the logits are computed in chunks of the batch, twice if there is a backward pass: much less memory
    where there are many classes.
    """
    _check(input, linear_weight, linear_bias)
    outputs = tuple(linear_weight.shape[:-1])
    if ignore_index is not None and target.shape == (*input.shape[:-1], *outputs) and target._kind.differentiable:
        raise RuntimeError(f"ignore_index cannot be specified when target contains probabilities: {ignore_index}")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        plain = reduction in REDUCTIONS and label_smoothing == 0 and target.dtype is int64
        if plain and len(outputs) == 1:
            number = reduction_number(reduction, None, None)
            return _in_chunks(input, linear_weight, target, linear_bias, weight, number, ignored, options)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). Got "
            f"{reduction=}, {label_smoothing=}, target.dtype={target.dtype}, out_features={outputs[1:]}.",
            UserWarning,
            stacklevel=3,
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    flat = linear_weight if len(outputs) == 1 else linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = _linear(input, flat, bias).view(*input.shape[:-1], *outputs)
    return _cross_entropy(logits, target, weight, None, ignored, None, reduction, label_smoothing)
