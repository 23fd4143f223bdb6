"""Resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from ._table import NotRead, Operator, axes_of, numbers, reader


@reader("Resize", "Upsample")
def resize(node: Operator, x: Tensor, *operands: Any) -> Any:
    if node.kind == "Upsample" or node.opset < 11:
        scales, sizes = operands[0] if operands else None, None
        factors = node.get("scales") if scales is None else numbers(scales)
        how, nearest = "asymmetric", "floor"
    else:
        scales, sizes = (operands[1] if len(operands) > 1 else None), (operands[2] if len(operands) > 2 else None)
        factors = None if scales is None or not scales.numel() else numbers(scales)
        how = node.get("coordinate_transformation_mode", "half_pixel")
        nearest = node.get("nearest_mode", "round_prefer_floor")
    if how == "tf_crop_and_resize" or node.get("antialias", 0):
        raise NotRead(f"resizing by {how if how.startswith('tf') else 'antialiasing'}")
    dims = [each % x.dim() for each in (axes_of(node, None) or range(x.dim()))]
    lengths = None if sizes is None else _lengths(node, x, dims, [int(each) for each in numbers(sizes)])
    for position, dim in enumerate(dims):
        size = x.shape[dim]
        if lengths is not None:
            goal, scale = lengths[position]
        else:
            assert factors is not None
            scale = float(factors[position])
            goal = int(size * scale)
        if goal != size or scale != 1:
            x = _along(node, x, dim, goal, scale, how, nearest)
    return x


def _lengths(node: Operator, x: Tensor, dims: Sequence[int], wanted: Sequence[int]) -> list[tuple[int, float]]:
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    ratios = [size / x.shape[dim] for size, dim in zip(wanted, dims, strict=True)]
    if policy == "stretch":
        return list(zip(wanted, ratios, strict=True))
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [(int(scale * x.shape[dim] + 0.5), scale) for dim in dims]


def _places(size: int, goal: int, scale: float, how: str) -> Any:
    """Where the new pixels stand among the old."""
    steps = flambeau.arange(goal, dtype=flambeau.float64)
    if how == "asymmetric":
        return steps / scale
    if how == "align_corners":
        return steps * ((size - 1) / (scale * size - 1)) if goal > 1 else steps * 0
    if how == "half_pixel":
        return (steps + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        return (steps + 0.5) / scale - 0.5 if goal > 1 else steps * 0
    if how == "half_pixel_symmetric":
        adjusted = goal / (scale * size)
        return size / 2 * (1 - adjusted) + (steps + 0.5) / scale - 0.5
    raise NotRead(f"resizing by {how}")


def _along(node: Operator, x: Tensor, dim: int, goal: int, scale: float, how: str, nearest: str) -> Any:
    size = x.shape[dim]
    places = _places(size, goal, scale, how)
    mode = node.get("mode", "nearest")
    if mode == "nearest":
        roundings: dict[str, Callable[[Any], Any]] = {
            "floor": flambeau.floor, "ceil": flambeau.ceil,
            "round_prefer_floor": lambda at: flambeau.ceil(at - 0.5),
            "round_prefer_ceil": lambda at: flambeau.floor(at + 0.5),
        }  # fmt: skip
        return x.index_select(dim, roundings[nearest](places).long().clamp(0, size - 1))
    base = flambeau.floor(places)
    rest = places - base
    if mode == "linear":
        taps = [(0, 1 - rest), (1, rest)]
    elif mode == "cubic":
        a = node.get("cubic_coeff_a", -0.75)
        taps = [(offset, _cubic(flambeau.abs(rest - offset), a)) for offset in (-1, 0, 1, 2)]
    else:
        raise NotRead(f"resizing by {mode}")
    shape = [goal if each == dim else 1 for each in range(x.dim())]
    weights = [weight for _, weight in taps]
    if node.get("exclude_outside", 0):
        inside = [((base + offset >= 0) & (base + offset < size)).double() for offset, _ in taps]
        weights = [weight * keep for weight, keep in zip(weights, inside, strict=True)]
        total: Any = sum(weights)
        weights = [weight / total for weight in weights]
    made: Any = 0.0
    for (offset, _), weight in zip(taps, weights, strict=True):
        rows = x.index_select(dim, (base + offset).long().clamp(0, size - 1))
        made = made + rows * weight.to(x.dtype).reshape(shape)
    return made


def _cubic(distance: Any, a: float) -> Any:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return flambeau.where(distance <= 1, near, flambeau.where(distance < 2, far, 0.0))


@reader("GridSample")
def grid_sample(node: Operator, x: Tensor, grid: Tensor) -> Any:
    modes = {"linear": "bilinear", "cubic": "bicubic"}
    mode = node.get("mode", "linear" if node.opset >= 20 else "bilinear")
    aligned = bool(node.get("align_corners", 0))
    return F.grid_sample(x, grid, modes.get(mode, mode), node.get("padding_mode", "zeros"), aligned)


@reader("AffineGrid")
def affine_grid(node: Operator, theta: Tensor, size: Tensor) -> Any:
    return F.affine_grid(theta, [int(each) for each in numbers(size)], bool(node.get("align_corners", 0)))


@reader("Col2Im")
def col2im(node: Operator, x: Tensor, image: Tensor, block: Tensor) -> Any:
    sizes, kernel = [int(each) for each in numbers(image)], [int(each) for each in numbers(block)]
    pads = node.get("pads", [0] * 2 * len(sizes))
    if len(sizes) != 2 or list(pads[:2]) != list(pads[2:]):
        raise NotRead("windows of images that have not two dimensions, or uneven padding")
    options = node.get("dilations", [1, 1]), list(pads[:2]), node.get("strides", [1, 1])
    return F.fold(x, sizes, kernel, *options)


@reader("RoiAlign")
def roi_align(node: Operator, x: Tensor, rois: Tensor, batches: Tensor) -> Any:
    height, width = node.get("output_height", 1), node.get("output_width", 1)
    scale, ratio = node.get("spatial_scale", 1.0), node.get("sampling_ratio", 0)
    half = (
        0.5
        if node.get("coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "") == "half_pixel"
        else 0
    )
    if ratio <= 0 or node.get("mode", "avg") != "avg":
        raise NotRead("regions by the largest sample, or with a number of samples that depends on their size")
    made = []
    for row, batch in zip(rois, numbers(batches), strict=True):
        x1, y1, x2, y2 = (row * scale - half).unbind()
        tall, wide = y2 - y1, x2 - x1
        if not half:
            tall, wide = tall.clamp(min=1.0), wide.clamp(min=1.0)
        ys = y1 + (flambeau.arange(height * ratio) + 0.5) * (tall / (height * ratio))
        xs = x1 + (flambeau.arange(width * ratio) + 0.5) * (wide / (width * ratio))
        cells = _bilinear(x[batch], ys, xs).reshape(x.shape[1], height, ratio, width, ratio)
        made.append(cells.mean((2, 4)))
    return flambeau.stack(made)


def _bilinear(image: Tensor, ys: Tensor, xs: Tensor) -> Any:
    result = image
    for dim, places in ((1, ys), (2, xs)):
        size = image.shape[dim]
        outside = (places < -1) | (places > size)
        at = places.clamp(0, size - 1)
        low = flambeau.floor(at).long()
        high = (low + 1).clamp(max=size - 1)
        part = (at - low).to(image.dtype)
        shape = [-1 if each == dim else 1 for each in range(3)]
        mixed = result.index_select(dim, low) * (1 - part).reshape(shape)
        mixed = mixed + result.index_select(dim, high) * part.reshape(shape)
        result = mixed * (~outside).to(image.dtype).reshape(shape)
    return result


@reader("NonMaxSuppression")
def non_max_suppression(
    node: Operator, boxes: Tensor, scores: Tensor, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    count = 0 if most is None else int(most.reshape(()).item())
    bound = 0.0 if overlap is None else float(overlap.reshape(()).item())
    floor = None if least is None else float(least.reshape(()).item())
    found: list[list[int]] = []
    for batch in range(scores.shape[0]):
        corners = _corners(boxes[batch], node.get("center_point_box", 0))
        for group in range(scores.shape[1]):
            found += [[batch, group, place] for place in _kept(corners, scores[batch, group], count, bound, floor)]
    return flambeau.tensor(found, dtype=flambeau.int64).reshape(-1, 3)


def _corners(boxes: Tensor, by_centre: int) -> list[list[float]]:
    rows = []
    for a, b, c, d in boxes.tolist():
        if by_centre:
            rows.append([b - d / 2, a - c / 2, b + d / 2, a + c / 2])
        else:
            rows.append([min(a, c), min(b, d), max(a, c), max(b, d)])
    return rows


def _kept(corners: list[list[float]], scores: Tensor, count: int, bound: float, floor: float | None) -> list[int]:
    values = scores.tolist()
    order = sorted(range(len(values)), key=lambda place: -values[place])
    kept: list[int] = []
    for place in order:
        if len(kept) >= count or (floor is not None and values[place] <= floor):
            break
        if all(_overlap(corners[place], corners[other]) <= bound for other in kept):
            kept.append(place)
    return kept


def _overlap(a: list[float], b: list[float]) -> float:
    inner = max(min(a[2], b[2]) - max(a[0], b[0]), 0.0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)
    whole = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner
    return inner / whole if whole > 0 else 0.0
