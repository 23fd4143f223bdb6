"""Convolutions, pooling, normalisations, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from ._table import NotRead, Operator, reader
from .shape import pad_by


def _pads(node: Operator, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The widths before and after each dimension."""
    rank, how = len(kernel), node.get("auto_pad", "NOTSET")
    if how in ("NOTSET", ""):
        return list(node.get("pads", [0] * 2 * rank))
    if how == "VALID":
        return [0] * 2 * rank
    dilations = node.get("dilations", [1] * rank)
    before, after = [], []
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        span = dilation * (width - 1) + 1
        total = max((-(-size // stride) - 1) * stride + span - size, 0)
        small, large = total // 2, total - total // 2
        before.append(small if how == "SAME_UPPER" else large)
        after.append(large if how == "SAME_UPPER" else small)
    return before + after


def _even(pads: Sequence[int]) -> list[int] | None:
    """The widths, if they are the same on both sides."""
    rank = len(pads) // 2
    return list(pads[:rank]) if list(pads[:rank]) == list(pads[rank:]) else None


@reader("Conv")
def conv(node: Operator, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    rank = weight.dim() - 2
    if not 1 <= rank <= 3:
        raise NotRead(f"a convolution over {rank} dimensions")
    strides = node.get("strides", [1] * rank)
    pads = _pads(node, x.shape[2:], weight.shape[2:], strides)
    even = _even(pads)
    if even is None:
        x, even = pad_by(x, pads, 0.0), [0] * rank
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return function(x, weight, bias, strides, even, node.get("dilations", [1] * rank), node.get("group", 1))


@reader("ConvTranspose")
def conv_transpose(node: Operator, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    rank = weight.dim() - 2
    strides, dilations = node.get("strides", [1] * rank), node.get("dilations", [1] * rank)
    extra = list(node.get("output_padding", [0] * rank))
    pads = list(node.get("pads", [0] * 2 * rank))
    spans = [dilation * (width - 1) + 1 for dilation, width in zip(dilations, weight.shape[2:], strict=True)]
    wanted = node.get("output_shape")
    how = node.get("auto_pad", "NOTSET")
    if wanted is not None or how in ("SAME_UPPER", "SAME_LOWER"):
        sizes = wanted or [size * stride for size, stride in zip(x.shape[2:], strides, strict=True)]
        pads = _pads_for(how, x.shape[2:], sizes[-rank:], strides, spans, extra)
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    groups = node.get("group", 1)
    # All of it is computed, then the edges are cut off, or zeros put on.
    whole = function(x, weight, None, strides, [0] * rank, [0] * rank, groups, dilations)
    after = [more - cut for more, cut in zip(extra, pads[rank:], strict=True)]
    whole = pad_by(whole, [*(-each for each in pads[:rank]), *after], 0.0)
    return whole if bias is None else whole + bias.reshape(-1, *[1] * rank)


def _pads_for(
    how: str, sizes: Sequence[int], wanted: Sequence[int], strides: Sequence[int], spans: Sequence[int],
    extra: Sequence[int],
) -> list[int]:  # fmt: skip
    before, after = [], []
    for size, goal, stride, span, more in zip(sizes, wanted, strides, spans, extra, strict=True):
        total = stride * (size - 1) + more + span - goal
        small = total // 2
        before.append(small if how == "SAME_UPPER" else total - small)
        after.append(total - before[-1])
    return before + after


# ----- pooling --------------------------------------------------------------------------------------------------------


def _ceil_pads(node: Operator, x: Tensor, kernel: Sequence[int], strides: Sequence[int], pads: list[int]) -> list[int]:
    """With `ceil_mode`, room for a last window that begins inside of the image or of the padding before it."""
    if not node.get("ceil_mode", 0):
        return pads
    rank, dilations = len(kernel), node.get("dilations", [1] * len(kernel))
    made = list(pads)
    for dim in range(rank):
        span = dilations[dim] * (kernel[dim] - 1) + 1
        room = x.shape[2 + dim] + pads[dim] + pads[rank + dim] - span
        count = -(-room // strides[dim]) + 1
        if (count - 1) * strides[dim] >= x.shape[2 + dim] + pads[dim]:
            count -= 1
        made[rank + dim] += max((count - 1) * strides[dim] - room, 0)
    return made


@reader("MaxPool")
def max_pool(node: Operator, x: Tensor) -> Any:
    kernel = node.get("kernel_shape")
    rank = len(kernel)
    strides = node.get("strides", [1] * rank)
    pads = _ceil_pads(node, x, kernel, strides, _pads(node, x.shape[2:], kernel, strides))
    wide = x if x.dtype.is_floating_point else x.float()
    spatial = x.shape[2:]
    image = pad_by(wide, pads, float("-inf"))
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    made: Any = function(image, kernel, strides, 0, node.get("dilations", [1] * rank), return_indices=True)
    values, places = made
    values = values.to(x.dtype)
    return (values, _places(node, places, image.shape[2:], spatial, pads)) if node.results > 1 else values


def _places(node: Operator, places: Tensor, padded: Sequence[int], spatial: Sequence[int], pads: Sequence[int]) -> Any:
    """Places in a padded plane as places in the whole tensor."""
    parts = []
    rest = places
    for dim in reversed(range(len(spatial))):
        parts.append(rest % padded[dim] - pads[dim])
        rest = flambeau.div(rest, padded[dim], rounding_mode="floor")
    order = parts if node.get("storage_order", 0) else parts[::-1]
    sizes = list(spatial)[::-1] if node.get("storage_order", 0) else list(spatial)
    total: Any = 0
    for part, size in zip(order, sizes, strict=True):
        total = total * size + part
    planes = flambeau.arange(places.shape[0] * places.shape[1]).reshape(*places.shape[:2], *[1] * len(spatial))
    return planes * math.prod(spatial) + total


@reader("AveragePool")
def average_pool(node: Operator, x: Tensor) -> Any:
    kernel = node.get("kernel_shape")
    rank = len(kernel)
    strides = node.get("strides", [1] * rank)
    dilations = node.get("dilations", [1] * rank)
    given = _pads(node, x.shape[2:], kernel, strides)
    pads = _ceil_pads(node, x, kernel, strides, given)
    ones = flambeau.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    if node.get("count_include_pad", 0):
        ones = pad_by(ones, given, 1.0)
        ones = pad_by(ones, [after - before for after, before in zip(pads, given, strict=True)], 0.0)
    else:
        ones = pad_by(ones, pads, 0.0)
    count, total = (_window_sums(each, kernel, strides, dilations) for each in (ones, pad_by(x, pads, 0.0)))
    return total / count


def _window_sums(x: Tensor, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Any:
    batch, channels, *spatial = x.shape
    weight = flambeau.ones((1, 1, *kernel), dtype=x.dtype)
    function = (F.conv1d, F.conv2d, F.conv3d)[len(kernel) - 1]
    made = function(x.reshape(batch * channels, 1, *spatial), weight, None, strides, 0, dilations)
    return made.reshape(batch, channels, *made.shape[2:])


@reader("LpPool")
def lp_pool(node: Operator, x: Tensor) -> Any:
    kernel, p = node.get("kernel_shape"), node.get("p", 2)
    rank = len(kernel)
    strides = node.get("strides", [1] * rank)
    pads = _ceil_pads(node, x, kernel, strides, _pads(node, x.shape[2:], kernel, strides))
    powers = pad_by(flambeau.pow(x.abs(), p), pads, 0.0)
    return flambeau.pow(_window_sums(powers, kernel, strides, node.get("dilations", [1] * rank)), 1 / p)


@reader("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: Operator, x: Tensor) -> Any:
    dims = tuple(range(2, x.dim()))
    if node.kind == "GlobalAveragePool":
        return x.mean(dims, keepdim=True)
    if node.kind == "GlobalMaxPool":
        return x.amax(dims, keepdim=True)
    return flambeau.linalg.vector_norm(x, node.get("p", 2), dims, keepdim=True)


@reader("MaxUnpool")
def max_unpool(node: Operator, x: Tensor, places: Tensor, shape: Tensor | None = None) -> Any:
    kernel = node.get("kernel_shape")
    rank = len(kernel)
    strides, pads = node.get("strides", [1] * rank), node.get("pads", [0] * 2 * rank)
    sizes = [
        (size - 1) * stride - pads[dim] - pads[rank + dim] + width
        for dim, (size, stride, width) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    ]
    natural = [*x.shape[:2], *sizes]
    wanted = natural if shape is None else [int(each) for each in shape.tolist()]
    flat = flambeau.zeros(math.prod(natural), dtype=x.dtype).scatter(0, places.reshape(-1), x.reshape(-1))
    made = flat.reshape(natural)
    if wanted != natural:
        made = pad_by(made, [0] * rank + [goal - size for goal, size in zip(wanted[2:], sizes, strict=True)], 0.0)
    return made


# ----- normalisations -------------------------------------------------------------------------------------------------


def _by_channel(values: Tensor, rank: int) -> Any:
    return values.reshape(1, -1, *[1] * (rank - 2))


@reader("BatchNormalization")
def batch_normalization(node: Operator, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Any:
    eps = node.get("epsilon", 1e-5)
    if not node.get("training_mode", 0):
        shift = _by_channel(mean, x.dim()), _by_channel(var, x.dim())
        normal = (x - shift[0]) * flambeau.rsqrt(shift[1] + eps)
        return (normal * _by_channel(scale, x.dim()) + _by_channel(bias, x.dim())).to(x.dtype)
    dims = (0, *range(2, x.dim()))
    centre = x.mean(dims)
    spread = x.var(dims, correction=0)
    normal = (x - _by_channel(centre, x.dim())) * flambeau.rsqrt(_by_channel(spread, x.dim()) + eps)
    keep = node.get("momentum", 0.9)
    moved = mean * keep + centre * (1 - keep), var * keep + spread * (1 - keep)
    return (normal * _by_channel(scale, x.dim()) + _by_channel(bias, x.dim()), *moved)


@reader("InstanceNormalization")
def instance_normalization(node: Operator, x: Tensor, scale: Tensor, bias: Tensor) -> Any:
    dims = tuple(range(2, x.dim()))
    gap = x - x.mean(dims, keepdim=True)
    normal = gap * flambeau.rsqrt((gap * gap).mean(dims, keepdim=True) + node.get("epsilon", 1e-5))
    return normal * _by_channel(scale, x.dim()) + _by_channel(bias, x.dim())


@reader("GroupNormalization")
def group_normalization(node: Operator, x: Tensor, scale: Tensor, bias: Tensor) -> Any:
    groups, channels = node.get("num_groups"), x.shape[1]
    if scale.numel() == groups != channels:  # before opset 21 there is one number for each group
        scale, bias = (each.repeat_interleave(channels // groups) for each in (scale, bias))
    return F.group_norm(x, groups, scale, bias, node.get("epsilon", 1e-5))


@reader("LayerNormalization")
def layer_normalization(node: Operator, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Any:
    axis = node.get("axis", -1) % x.dim()
    dims = tuple(range(axis, x.dim()))
    eps = node.get("epsilon", 1e-5)
    wide = x.float() if x.dtype.itemsize == 2 else x
    mean = wide.mean(dims, keepdim=True)
    gap = wide - mean
    inverse = flambeau.rsqrt((gap * gap).mean(dims, keepdim=True) + eps)
    made = (gap * inverse).to(x.dtype) * scale
    return made if bias is None else made + bias, mean, inverse


@reader("RMSNormalization", "SimplifiedLayerNormalization")
def rms_normalization(node: Operator, x: Tensor, scale: Tensor) -> Any:
    dims = tuple(range(node.get("axis", -1) % x.dim(), x.dim()))
    wide = x.float() if x.dtype.itemsize == 2 else x
    inverse = flambeau.rsqrt((wide * wide).mean(dims, keepdim=True) + node.get("epsilon", 1e-5))
    return (wide * inverse).to(x.dtype) * scale


@reader("LRN")
def lrn(node: Operator, x: Tensor) -> Any:
    size = node.get("size")
    before = (size - 1) // 2
    others = [0] * (x.dim() - 3)
    squares = pad_by((x * x).transpose(1, -1), [*others, before, *others, size - 1 - before], 0.0)
    sums = squares.unfold(-1, size, 1).sum(-1).transpose(1, -1)
    return x / flambeau.pow(sums * (node.get("alpha", 1e-4) / size) + node.get("bias", 1.0), node.get("beta", 0.75))


# ----- losses ---------------------------------------------------------------------------------------------------------


@reader("NegativeLogLikelihoodLoss")
def nll_loss(node: Operator, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
    ignored = node.get("ignore_index", -100)
    return F.nll_loss(x, target.long(), weight, ignore_index=ignored, reduction=node.get("reduction", "mean"))


@reader("SoftmaxCrossEntropyLoss")
def cross_entropy(node: Operator, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
    logs = flambeau.log_softmax(x, 1)
    return nll_loss(node, logs, target, weight), logs
