"""Resizing against PyTorch: every mode, 8-bit images, layouts, derivatives, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ....support.differential import differential, outcome, warned

CASES = [
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 1), ("nearest-exact", 2), ("nearest-exact", 3),
    ("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("area", 1), ("area", 2), ("area", 3),
]  # fmt: skip
ALIGNABLE = ("linear", "bilinear", "bicubic", "trilinear")


def image(T: Any, rank: int, dtype: str = "float64") -> Any:
    shape = (2, 3, *(5, 4, 6)[:rank])
    count = math.prod(shape)
    pixels = ((T.arange(count) * 73 + 11) % 256).reshape(shape).to(getattr(T, dtype))
    return pixels if dtype == "uint8" else pixels / 256


def ways(mode: str, rank: int) -> list[dict[str, Any]]:
    """Sizes and factors, with corners aligned and not, as keyword arguments."""
    resizes: list[dict[str, Any]] = [
        {"size": (7, 3, 11)[:rank]},
        {"size": 5},
        {"scale_factor": (1.7, 0.6, 2.0)[:rank]},
        {"scale_factor": 1.3, "recompute_scale_factor": True},
    ]
    corners: list[dict[str, Any]] = [{"align_corners": True}, {"align_corners": False}] if mode in ALIGNABLE else [{}]
    return [{**resize, **corner, "mode": mode} for resize in resizes for corner in corners]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("mode", "rank"), CASES)
@differential(tolerance=2e-6)
def test_values(T: Any, mode: str, rank: int, dtype: str) -> Any:
    x = image(T, rank, dtype)
    return [T.nn.functional.interpolate(x, **way) for way in ways(mode, rank)]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@differential(tolerance=2e-6)
def test_filters(T: Any, mode: str) -> Any:
    corners = [False] if mode == "lanczos" else [False, True]
    return [
        T.nn.functional.interpolate(x, size, mode=mode, align_corners=corner, antialias=True)
        for x in (image(T, 2), image(T, 2, "float32"))
        for size in ((3, 2), (8, 9), (5, 4))
        for corner in corners
    ]


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@differential(tolerance=0.0)
def test_bytes(T: Any, mode: str, antialias: bool) -> Any:
    x = image(T, 2, "uint8")
    antialias = antialias and mode in ALIGNABLE
    return [T.nn.functional.interpolate(x, antialias=antialias, **way) for way in ways(mode, 2)]


@pytest.mark.parametrize(("mode", "rank"), CASES)
@differential(tolerance=0.0)
def test_half_precision(T: Any, mode: str, rank: int) -> Any:
    x = image(T, rank, "bfloat16")
    return T.nn.functional.interpolate(x, scale_factor=2, mode=mode)


@pytest.mark.parametrize(("mode", "rank"), [*CASES, ("bilinear aa", 2), ("bicubic aa", 2)])
@differential
def test_derivatives(T: Any, mode: str, rank: int) -> Any:
    x = image(T, rank).requires_grad_()
    mode, _, antialias = mode.partition(" ")
    observed = []
    for way in ({"size": (7, 3, 8)[:rank]}, {"scale_factor": (1.7, 0.6, 1.2)[:rank]}):
        result = T.nn.functional.interpolate(x, mode=mode, antialias=bool(antialias), **way)
        (first,) = T.autograd.grad((result**3).sum(), x, create_graph=True)
        observed += [result, first.detach(), *T.autograd.grad((first**2).sum(), x)]
    return observed


@pytest.mark.parametrize(("mode", "rank"), [case for case in CASES if case[1] > 1])
@differential(tolerance=2e-6)
def test_channels_last(T: Any, mode: str, rank: int) -> Any:
    x = image(T, rank, "float32").contiguous(memory_format=T.channels_last if rank == 2 else T.channels_last_3d)
    return T.nn.functional.interpolate(x, (7, 3, 8)[:rank], mode=mode)


@differential
def test_a_result_is_a_copy(T: Any) -> Any:
    x = image(T, 2)
    same = T.nn.functional.interpolate(x, (5, 4), mode="bilinear", antialias=True)
    return same, same.data_ptr() == x.data_ptr()


@differential
def test_no_data(T: Any) -> Any:
    F = T.nn.functional
    return F.interpolate(T.ones(0, 3, 4, 4), 2, mode="bilinear"), F.interpolate(T.ones(1, 3, 4, 4, device="meta"), 2)


@differential
def test_older_names(T: Any) -> Any:
    F = T.nn.functional
    x = image(T, 2)
    return (
        warned(lambda: F.upsample(x, 7), "`nn.functional.upsample` is deprecated"),
        warned(lambda: F.upsample_nearest(x, scale_factor=2), "Use `nn.functional.interpolate` instead"),
        warned(lambda: F.upsample_bilinear(x, 7), "is deprecated"),
    )


@differential
def test_errors(T: Any) -> Any:
    f = T.nn.functional.interpolate
    x = T.ones(1, 1, 4, 4)
    return (
        outcome(lambda: f(x), "either size or scale_factor should be defined"),
        outcome(lambda: f(x, 2, 2), "only one of size or scale_factor"),
        outcome(lambda: f(x, (2, 2, 2)), "must have the same number of spatial dimensions"),
        outcome(lambda: f(x, scale_factor=(2, 2, 2)), "must have the same number of spatial dimensions"),
        outcome(lambda: f(x, 2, mode="other"), "Only 3D, 4D and 5D input Tensors supported"),
        outcome(lambda: f(x, 2, mode="linear"), "linear mode needs 3D input"),
        outcome(lambda: f(x[0, 0], 2), "Only 3D, 4D and 5D input Tensors supported"),
        outcome(lambda: f(x, 2, align_corners=True), "align_corners option can only be set"),
        outcome(lambda: f(x, 2, antialias=True), "Anti-alias option is restricted"),
        outcome(lambda: f(x, 2, mode="lanczos"), "Lanczos mode requires antialias=True"),
        outcome(lambda: f(x, 2, recompute_scale_factor=True), "not meaningful with an explicit size"),
        outcome(lambda: f(x, 0), "Input and output sizes should be greater than 0"),
        outcome(lambda: f(x, (2.5, 2)), "expected size to be one of int"),
        outcome(lambda: f(x.long(), 2), "not implemented for"),
        outcome(lambda: f(T.ones(2, 0, 4, 4), 2), "Non-empty 4D data tensor expected"),
    )


@differential
def test_filters_under_the_name_of_their_op(torch: Any) -> Any:
    image, op = torch.arange(32.0).reshape(1, 2, 4, 4), torch.ops.aten._upsample_bilinear2d_aa
    sized = op(image, [2, 3], False), op(image, [2, 2], False, 0.5, 0.5), op(image, [3, 3], True)
    return *sized, op.vec(image, None, True, [1.7, 0.9])


@differential(tolerance=2e-6)
def test_sizes_that_equal_known_ones_are_looked_at(T: Any) -> Any:
    """What was worked out for a size serves those that are the same, not those that are merely equal."""
    x, resize = image(T, 2, "float32"), T.nn.functional.interpolate
    return (
        resize(x, size=7, mode="bilinear"),
        outcome(lambda: resize(x, size=7.0, mode="bilinear")),
        resize(x, size=(7, 3)),
        outcome(lambda: resize(x, size=(7.0, 3)), "expected size to be one of int"),
        resize(x, scale_factor=2, mode="bilinear"),
        resize(x, scale_factor=2.0, mode="bilinear", align_corners=True),
        resize(x, scale_factor=2.0, mode="bilinear", recompute_scale_factor=True),
        resize(x, scale_factor=[2, 1.5], mode="bicubic"),
        outcome(lambda: resize(x[:, :, :0], scale_factor=2), "should be greater than 0"),
    )
