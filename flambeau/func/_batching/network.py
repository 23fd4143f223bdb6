"""Layers: convolutions, normalisation, attention, recurrence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from .by_axes import folded, rank, unfolded, with_ranks
from .level import Shared, Vmap
from .loop import loop
from .rules import decomposition, rule

# ----- convolutions -------------------------------------------------------------------------------------------------


def _as_channels(level: Vmap, tensor: Any) -> Any:
    """The examples of images as further channels."""
    value = level.front(tensor).transpose(0, 1)
    count, examples, channels, *sizes = value._array.shape
    return value.reshape(count, examples * channels, *sizes)


def _from_channels(level: Vmap, value: Tensor) -> Tensor:
    """Back from channels to examples."""
    count, channels, *sizes = value._array.shape
    return value.reshape(count, level.size, channels // level.size, *sizes).transpose(0, 1)


def _as_rows(level: Vmap, tensor: Any) -> Any:
    """The examples of weights one below the other."""
    value = level.front(tensor)
    return value.reshape(level.size * value._array.shape[1], *value._array.shape[2:])


@rule("convolution")
def _convolution(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    input, weight, bias, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, *rest = args
    geometry = (stride, padding, dilation, transposed, output_padding)
    kept = rank(weight) - 1
    if not level.has(weight):
        apart = level.has(bias)
        images, lead = folded(level, input, kept)
        given = (None, None) if apart else (bias, bias_sizes)
        result = unfolded(op(images, weight, *given, *geometry, groups, *rest), lead)
        if not apart:
            return result
        ones = [1] * (kept - 1)
        return result + bias.value.reshape(level.size, *[1] * (rank(input) - kept), -1, *ones)
    single = rank(input) == kept
    if single:
        input = level.wrapped(level.front(input).unsqueeze(1))
    rows = None if bias is None else level.front(bias).reshape(-1)
    sizes = None if rows is None else rows._array.shape
    if not level.has(input) and groups == 1 and not transposed:
        result = op(input, _as_rows(level, weight), rows, sizes, *geometry, 1, *rest)
    else:
        images = _as_channels(level, input)
        result = op(images, _as_rows(level, weight), rows, sizes, *geometry, groups * level.size, *rest)
    result = _from_channels(level, result)
    return result.squeeze(1) if single else result


@rule("convolution_backward")
def _convolution_backward(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, mask, *rest = args
    geometry = (stride, padding, dilation, transposed, output_padding)
    kept = rank(weight) - 1
    of_input = of_weight = of_bias = None
    if mask[0]:
        only = (True, False, False)
        if not level.has(weight):
            grads, lead = folded(level, grad, kept)
            found = op(grads, folded(level, input, kept)[0], weight, *geometry, groups, only, *rest)[0]
            of_input = unfolded(found, lead)
        else:
            given = _as_channels(level, grad), _as_channels(level, input), _as_rows(level, weight)
            of_input = _from_channels(level, op(*given, *geometry, groups * level.size, only, *rest)[0])
    if mask[1]:
        given = _as_channels(level, grad), _as_channels(level, input), _as_rows(level, weight)
        found = op(*given, *geometry, groups * level.size, (False, True, False), *rest)[1]
        of_weight = found.reshape(level.size, *weight._array.shape)
    if mask[2]:
        value = level.front(grad)
        of_bias = value.sum((1, *range(3, value._array.ndim)))
    return of_input, of_weight, of_bias


@decomposition("conv_tbc")
def _conv_tbc(self: Any, weight: Any, bias: Any, pad: int) -> Tensor:
    from ...nn.functional import conv1d

    return conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


# ----- normalisation ------------------------------------------------------------------------------------------------


def _stretched(level: Vmap, value: Any, weight: Any, bias: Any, ndim: int, spatial: int = 0) -> Any:
    """`value * weight + bias`; these have the last dimensions, before `spatial` more."""
    for each, adds in ((weight, False), (bias, True)):
        if each is None:
            continue
        factor = each.reshape(*each._array.shape, *[1] * spatial) if not level.has(each) else None
        if factor is None:
            shaped = each.value.reshape(level.size, *each._array.shape, *[1] * spatial)
            factor = with_ranks(level, level.wrapped(shaped), ndim)
        value = value + factor if adds else value * factor
    return value


@rule("layer_norm")
def _layer_norm(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    input, shape, weight, bias, *rest = args
    if not level.has(weight) and not level.has(bias):
        return op(input.value, shape, weight, bias, *rest)
    result, *statistics = op(level.front(input), shape, None, None, *rest)
    return (_stretched(level, result, weight, bias, rank(input)), *statistics)


@rule("rms_norm")
def _rms_norm(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    input, shape, weight, eps = args
    if not level.has(weight):
        return op(input.value, shape, weight, eps)
    result, rstd = op(level.front(input), shape, None, eps)
    return _stretched(level, result, weight, None, rank(input)), rstd


@rule("group_norm")
def _group_norm(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    input, weight, bias, count, *rest = args
    value = level.front(input)
    images = value.reshape(level.size * count, *value._array.shape[2:])
    apart = level.has(weight) or level.has(bias)
    given = (None, None) if apart else (weight, bias)
    found = op(images, *given, level.size * count, *rest)
    result, *statistics = unfolded(found, (level.size, count))
    if apart:
        result = _stretched(level, result, weight, bias, rank(input), rank(input) - 2)
    return (result, *statistics)


@rule(
    "native_batch_norm native_batch_norm_legit native_batch_norm_legit_no_stats batch_norm_with_update",
    "native_batch_norm_legit_no_training",
)
def _batch_norm(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    input, *tensors, training, eps, kept = args
    running = (None, None) if training else tensors[2:]  # in training they are only moved, by another op
    if not any(level.has(each) for each in (input, *running)):
        result, *statistics = op(input, None, None, *running, training, eps, kept)
        weight, bias = tensors[:2]
        full = _stretched(level, level.front(result), weight, bias, rank(input), rank(input) - 2)
        return (full, *[Shared(each) for each in statistics])
    channels = [each if each is None else level.front(each).reshape(-1) for each in (*tensors[:2], *running)]
    result, *statistics = op(_as_channels(level, input), *channels, training, eps, kept)
    shaped = [each.reshape(level.size, each._array.size // level.size) for each in statistics]
    return (_from_channels(level, result), *shaped)


def _check_running(level: Vmap, running: Tensor) -> None:
    if not level.has(running):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched. Use torch.func.stack_module_state for them, or a layer without running "
            "statistics (track_running_stats=False)."
        )


@rule("average_running_statistics")
def _average(level: Vmap, op: Op, args: Sequence[Any]) -> None:
    running, moved, batch = args
    _check_running(level, running)
    op(running.value.reshape(-1), level.front(moved).reshape(-1), batch)


@rule("move_running_statistics")
def _move(level: Vmap, op: Op, args: Sequence[Any]) -> None:
    running_mean, running_var, mean, variance, momentum, size = args
    if level.has(mean) or level.has(variance):
        _check_running(level, running_mean)
        _check_running(level, running_var)
        values = [level.front(each) for each in args[:4]]
        op(*values, momentum, size * level.size)
        return
    # One batch for all examples, of which some or all have statistics of their own.
    count = size // max(variance._array.size, 1)
    spread = variance * (count / max(count - 1, 1)) if count != 1 else variance.new_full(variance.shape, math.nan)
    for running, towards in ((running_mean, mean), (running_var, spread)):
        moved = level.value(running)
        moved.copy_(moved * (1 - momentum) + towards * momentum)


@decomposition("normalised")
def _normalised(v: Tensor, g: Any, dim: int) -> Any:
    others = tuple(each for each in range(v._array.ndim) if each != dim)
    norms = v.norm(2, others, keepdim=True)
    return v * (g / norms), norms


# ----- attention and recurrence -------------------------------------------------------------------------------------


@rule("attention", "dropped_attention")
def _attention(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """The second has one more tensor of the batch: which weights are kept."""
    *batched, dropout, causal, mask, scale = args
    query, last = batched[0], rank(batched[0]) - 1
    folds = [folded(level, each, last) for each in batched]
    lead = folds[0][1]
    if mask is not None:
        missing = rank(query) - rank(mask)
        full = level.front(mask).reshape(level.size, *[1] * missing, *mask._array.shape)
        mask = full.expand(*lead, *full._array.shape[2:]).reshape(-1, *full._array.shape[2:])
    return unfolded(op(*[each for each, _ in folds], dropout, causal, mask, scale), lead)


@rule("rnn_layer", "gru_layer", "lstm_layer")
def _recurrent(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """Examples are further sequences, unless their weights differ."""
    states = 3 if op.name == "lstm_layer" else 2
    if any(level.has(each) for each in args[states:]) or args[op.parameters.index("sizes")] is not None:
        return loop(level, op, args)
    given = list(args)
    for position in range(states):
        value = level.front(args[position])
        dim = rank(args[position]) - 2  # of the sequences of a batch
        moved = value.movedim(0, dim)
        given[position] = moved.reshape(*moved._array.shape[:dim], -1, moved._array.shape[-1])
    results = op(*given)
    return tuple(_sequences(level, each) for each in results)


def _sequences(level: Vmap, value: Tensor) -> Any:
    shape = value._array.shape
    if len(shape) < 2:
        return level.front(value)
    return value.reshape(*shape[:-2], level.size, -1, shape[-1]).movedim(-3, 0)
