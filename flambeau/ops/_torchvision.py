"""Twins of torchvision's compiled operators, in Python: what `torch.ops.load_library` finds for that library.

Pooling of regions samples an image linearly along both axes, so that a region's result is a product of two small
matrices of weights with the image: differentiable, and without a loop over points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.names.absent import refusal
from .._core.tensor import Tensor
from ._custom import OPERATORS, define

_NAMESPACE = "torchvision"
_MOST_ELEMENTS = 1 << 24
"""How large the intermediate result of pooling may become: more regions are pooled in several parts."""


def _torch() -> Any:
    import flambeau

    return flambeau


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The numbers of the boxes that are kept, best first: none overlaps a better one by more than the threshold."""
    torch = _torch()
    torch._check(dets.dim() == 2, lambda: f"boxes should be a 2d tensor, got {dets.dim()}D")
    torch._check(dets.size(1) == 4, lambda: f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    torch._check(scores.dim() == 1, lambda: f"scores should be a 1d tensor, got {scores.dim()}D")
    torch._check(
        dets.size(0) == scores.size(0),
        lambda: (
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.size(0)} and {scores.size(0)}"
        ),
    )
    order = scores.detach().argsort(stable=True, descending=True)
    boxes = dets.detach()[order].cpu().numpy()
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = np.ones(len(boxes), bool)
    kept = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for number in range(len(boxes)):
            if not left[number]:
                continue
            kept.append(number)
            box, others = boxes[number], boxes[number + 1 :]
            width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
            height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
            common = np.maximum(width, 0) * np.maximum(height, 0)
            overlap = common / (areas[number] + areas[number + 1 :] - common)
            left[number + 1 :] &= ~(overlap.astype(np.float64) > iou_threshold)
    return order[torch.tensor(kept, dtype=torch.int64, device=dets.device)]


def _axis_weights(start: Tensor, bin_size: Tensor, bins: int, points: Tensor, size: int) -> Tensor:
    """For each region and bin the weights of the `size` positions along an axis; `points` are sampled in a bin."""
    torch = _torch()
    weights = start.new_zeros(start.size(0), bins, size)
    for count in sorted(set(points.tolist())):
        rows = (points == count).nonzero()[:, 0]
        if count <= 0:
            continue
        step = torch.arange(bins * count, dtype=start.dtype, device=start.device)
        inside = (step % count + 0.5) * (bin_size[rows, None] / count)
        place = start[rows, None] + torch.div(step, count, rounding_mode="floor") * bin_size[rows, None] + inside
        is_valid = (place >= -1.0) & (place <= size)
        place = place.clamp(min=0).clamp(max=size - 1)
        low = place.floor()
        share = place - low
        low = low.long()
        high = (low + 1).clamp(max=size - 1)
        sampled = start.new_zeros(len(rows), bins * count, size)
        sampled = sampled.scatter_add(2, low[..., None], ((1 - share) * is_valid)[..., None])
        sampled = sampled.scatter_add(2, high[..., None], (share * is_valid)[..., None])
        weights = weights.index_copy(0, rows, sampled.reshape(len(rows), bins, count, size).mean(2))
    return weights


def _region_weights(
    rois: Tensor, scale: float, height: int, width: int, bins: tuple[int, int], ratio: int, offset: float, least: float
) -> tuple[Tensor, Tensor]:
    torch = _torch()
    found = []
    for axis, size in ((2, height), (1, width)):
        start = rois[:, axis] * scale - offset
        extent = rois[:, axis + 2] * scale - offset - start
        if least:
            extent = extent.clamp(min=least)
        number = bins[0] if axis == 2 else bins[1]
        bin_size = extent / number
        points = torch.full_like(bin_size, ratio) if ratio > 0 else bin_size.ceil()
        found.append(_axis_weights(start, bin_size, number, points.long(), size))
    return found[0], found[1]


def _by_image(
    input: Tensor,
    rois: Tensor,
    rows: Tensor,
    columns: Tensor,
    pool: Callable[[Tensor, Tensor, Tensor], Tensor],
    out: Any,
) -> Tensor:
    """Pool the regions of each image, as many at once as fit."""
    torch = _torch()
    if rois.size(0) == 0:
        return input.new_zeros(out) + input.flatten()[:0].sum()  # no elements, and still a function of the image
    images = rois[:, 0].long()
    many = max(1, _MOST_ELEMENTS // max(1, input[0].numel() // input.size(2) * rows.size(1)))
    results, places = [], []
    for number in sorted(set(images.tolist())):
        for chosen in (images == number).nonzero()[:, 0].split(many):
            results.append(pool(input[number], rows[chosen], columns[chosen]))
            places.append(chosen)
    pooled: Tensor = torch.cat(results)[torch.cat(places).argsort()]
    return pooled


def _same_dtype(input: Tensor, rois: Tensor) -> None:
    _torch()._check(rois.size(1) == 5, lambda: "rois must have shape as Tensor[K, 5]")
    _torch()._check(
        input.dtype == rois.dtype,
        lambda: (
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        ),
    )


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Averages of points, linearly interpolated, in the bins of each region."""
    _same_dtype(input, rois)
    offset, least = (0.5, 0.0) if aligned else (0.0, 1.0)
    bins = (pooled_height, pooled_width)
    rows, columns = _region_weights(
        rois.detach(), spatial_scale, input.size(2), input.size(3), bins, sampling_ratio, offset, least
    )

    def pool(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
        return (y[:, None] @ image[None]) @ x[:, None].transpose(-1, -2)

    return _by_image(input, rois, rows, columns, pool, (rois.size(0), input.size(1), *bins))


def _channel_mapping(input: Tensor, rois: Tensor, bins: tuple[int, int]) -> Tensor:
    torch = _torch()
    channels = input.size(1)
    torch._check(
        channels % (bins[0] * bins[1]) == 0,
        lambda: "input channels must be a multiple of pooling height * pooling width",
    )
    own = torch.arange(channels, dtype=torch.int32, device=input.device).reshape(-1, *bins)
    mapping: Tensor = own.expand(rois.size(0), *own.shape).contiguous()
    return mapping


def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    """Means of bins, each with channels of its own; and the number of the channel for each result."""
    torch = _torch()
    _same_dtype(input, rois)
    bins = (pooled_height, pooled_width)
    mapping = _channel_mapping(input, rois, bins)
    rows, columns = _region_weights(
        rois.detach(), spatial_scale, input.size(2), input.size(3), bins, sampling_ratio, 0.5, 0.0
    )

    def pool(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
        own = image.reshape(-1, *bins, *image.shape[1:])
        pooled: Tensor = (torch.einsum("kih,cijhw->kcijw", y, own) * x[:, None, None]).sum(-1)
        return pooled

    return _by_image(input, rois, rows, columns, pool, mapping.shape), mapping


def _bin_bounds(start: int, extent: float, bins: int, size: int) -> list[tuple[int, int]]:
    step = np.float32(extent) / np.float32(bins)
    return [
        (
            min(max(int(np.floor(np.float32(number) * step)) + start, 0), size),
            min(max(int(np.ceil(np.float32(number + 1) * step)) + start, 0), size),
        )
        for number in range(bins)
    ]


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest element in each bin of each region, and its place in the image; -1 where a bin is empty."""
    torch = _torch()
    _same_dtype(input, rois)
    height, width = input.shape[2:]
    out = input.new_zeros(rois.size(0), input.size(1), pooled_height, pooled_width)
    where = torch.full(out.shape, -1, dtype=torch.int32, device=input.device)
    corners = _rounded(rois[:, 1:] * spatial_scale)
    for number, image in enumerate(rois[:, 0].long().tolist()):
        left, top, right, bottom = corners[number]
        down = _bin_bounds(top, max(bottom - top + 1, 1), pooled_height, height)
        across = _bin_bounds(left, max(right - left + 1, 1), pooled_width, width)
        for i, (upper, lower) in enumerate(down):
            for j, (first, last) in enumerate(across):
                if upper < lower and first < last:
                    values, places = input[image, :, upper:lower, first:last].flatten(1).max(1)
                    row = places // (last - first) + upper
                    out[number, :, i, j] = values
                    where[number, :, i, j] = (row * width + places % (last - first) + first).int()
    return out, where


def _rounded(corners: Tensor) -> list[list[int]]:
    """Rounded to whole numbers, halves away from zero."""
    halves = corners.sign() * (corners.abs() + 0.5).floor()
    numbers: list[list[int]] = halves.long().tolist()
    return numbers


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The mean of each bin of each region, where each bin has channels of its own; and the channels' numbers."""
    _same_dtype(input, rois)
    bins = (pooled_height, pooled_width)
    mapping = _channel_mapping(input, rois, bins)
    height, width = input.shape[2:]
    out = input.new_zeros(mapping.shape)
    whole = _rounded(rois[:, 1:])
    for number, image in enumerate(rois[:, 0].long().tolist()):
        left, top, right, bottom = (each * spatial_scale for each in whole[number])
        own = input[image].reshape(-1, *bins, height, width)
        for i in range(bins[0]):
            upper, lower = _share(top, bottom, i, bins[0], height)
            for j in range(bins[1]):
                first, last = _share(left, right, j, bins[1], width)
                if upper < lower and first < last:
                    out[number, :, i, j] = own[:, i, j, upper:lower, first:last].mean((-1, -2))
    return out, mapping


def _share(start: float, end: float, number: int, bins: int, size: int) -> tuple[int, int]:
    step = np.float32(max(end - start, 0.1)) / np.float32(bins)
    low, high = np.float32(number) * step + np.float32(start), np.float32(number + 1) * step + np.float32(start)
    return min(max(int(np.floor(low)), 0), size - 1), min(max(int(np.ceil(high)), 0), size - 1)


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose points are moved by `offset`, and weighed by `mask`."""
    torch = _torch()
    batch, channels, height, width = input.shape
    _, _, kernel_h, kernel_w = weight.shape
    out_h, out_w = offset.shape[-2:]
    kind = {"dtype": input.dtype, "device": input.device}
    moved = offset.reshape(batch, offset_groups, kernel_h * kernel_w, 2, out_h, out_w)
    across = torch.arange(kernel_w, **kind).repeat(kernel_h) * dilation_w
    down = torch.arange(kernel_h, **kind).repeat_interleave(kernel_w) * dilation_h
    y = moved[:, :, :, 0] + (torch.arange(out_h, **kind) * stride_h - pad_h)[:, None] + down[:, None, None]
    x = moved[:, :, :, 1] + (torch.arange(out_w, **kind) * stride_w - pad_w) + across[:, None, None]
    images = input.reshape(batch, offset_groups, channels // offset_groups, height * width)
    is_inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    low_y, low_x = y.detach().floor(), x.detach().floor()
    total: Any = 0
    for corner_y, part_y in ((low_y, 1 - (y - low_y)), (low_y + 1, y - low_y)):
        for corner_x, part_x in ((low_x, 1 - (x - low_x)), (low_x + 1, x - low_x)):
            is_there = is_inside & (corner_y >= 0) & (corner_y < height) & (corner_x >= 0) & (corner_x < width)
            place = torch.where(is_there, corner_y * width + corner_x, 0).long().flatten(2)
            taken = images.gather(3, place[:, :, None].expand(-1, -1, images.size(2), -1))
            total = total + taken * torch.where(is_there, part_y * part_x, 0).flatten(2)[:, :, None]
    if use_mask:
        total = total * mask.reshape(batch, offset_groups, 1, -1)
    points = total.reshape(batch, groups, channels // groups * kernel_h * kernel_w, out_h * out_w)
    kernels = weight.reshape(groups, weight.size(0) // groups, -1)
    convolved: Tensor = (kernels @ points).reshape(batch, -1, out_h, out_w) + bias[:, None, None]
    return convolved


def _vector_jacobian(function: Callable[..., Any], grad: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    torch = _torch()
    leaves = [each.detach().requires_grad_() for each in inputs]
    with torch.enable_grad():
        out = function(*leaves)
        found = torch.autograd.grad(out, leaves, grad, allow_unused=True)
    return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found, strict=True)]


def _region_backward(name: str, maps: bool, sampled: bool) -> Callable[..., Tensor]:
    """The derivative of a pooling by the image, with the arguments of torchvision's operator for it."""
    forward = _TWINS[name][0]

    def backward(grad: Tensor, rois: Tensor, *rest: Any) -> Tensor:
        scale, bin_h, bin_w, *further = rest[1:] if maps else rest
        ratio: tuple[Any, ...] = ()
        if sampled and maps:
            ratio, further = (further[0],), further[1:]
        *shape, extra = (*further, ()) if len(further) == 4 else (*further[:4], tuple(further[4:]))
        image = grad.new_zeros(shape)

        def pool(image: Tensor) -> Tensor:
            out: Any = forward(image, rois, scale, bin_h, bin_w, *ratio, *extra)
            pooled: Tensor = out[0] if isinstance(out, tuple) else out
            return pooled

        return _vector_jacobian(pool, grad, [image])[0]

    return backward


def _roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, *rest: Any) -> Tensor:
    """Gradients go to where the largest elements were."""
    *_, batch, channels, height, width = rest
    where = argmax.long()
    out = grad.new_zeros(batch, channels, height * width + 1)
    where = _torch().where(where < 0, height * width, where)
    for number, image in enumerate(rois[:, 0].long().tolist()):
        out[image].scatter_add_(1, where[number].flatten(1), grad[number].flatten(1))
    return out[:, :, :-1].reshape(batch, channels, height, width)


def _deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *rest: Any
) -> list[Tensor]:
    return _vector_jacobian(lambda *each: deform_conv2d(*each, *rest), grad, [input, weight, offset, mask, bias])


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise refusal(f"torch.ops.torchvision.{name}", "this operator of torchvision has no twin in Python yet")

    return refuse


_REGIONS = "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width"
_TWINS: dict[str, tuple[Callable[..., Any], str]] = {
    "nms": (nms, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
    "roi_align": (roi_align, f"({_REGIONS}, int sampling_ratio, bool aligned) -> Tensor"),
    "roi_pool": (roi_pool, f"({_REGIONS}) -> (Tensor, Tensor)"),
    "ps_roi_align": (ps_roi_align, f"({_REGIONS}, int sampling_ratio) -> (Tensor, Tensor)"),
    "ps_roi_pool": (ps_roi_pool, f"({_REGIONS}) -> (Tensor, Tensor)"),
    "deform_conv2d": (deform_conv2d, "(Tensor input, Tensor weight, Tensor offset, ...) -> Tensor"),
    "_cuda_version": (lambda: -1, "() -> int"),
}
_TWINS |= {
    "_roi_align_backward": (_region_backward("roi_align", False, True), "(Tensor grad, Tensor rois, ...) -> Tensor"),
    "_ps_roi_align_backward": (
        _region_backward("ps_roi_align", True, True),
        "(Tensor grad, Tensor rois, ...) -> Tensor",
    ),
    "_ps_roi_pool_backward": (
        _region_backward("ps_roi_pool", True, False),
        "(Tensor grad, Tensor rois, ...) -> Tensor",
    ),
    "_roi_pool_backward": (_roi_pool_backward, "(Tensor grad, Tensor rois, Tensor argmax, ...) -> Tensor"),
    "_deform_conv2d_backward": (_deform_conv2d_backward, "(Tensor grad, Tensor input, ...) -> (Tensor, ...)"),
}
for _each in ("qnms", "qroi_align", "box_iou_rotated"):
    _TWINS[_each] = (_refusing(_each), "(...) -> Tensor")


def register() -> None:
    """Make the operators known, once."""
    if _NAMESPACE not in OPERATORS:
        for name, (function, schema) in _TWINS.items():
            define(_NAMESPACE, name + schema)._implement(function, "CompositeImplicitAutograd")
