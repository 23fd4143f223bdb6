"""Products, losses, normalisations, pooling and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import Call, Inputs, enter, found

Function = Callable[[Any, Any], Any]


def _matrix(name: str, call: Function, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.real(*inputs.square)
        return lambda: call(inputs.torch, x)

    enter(name, make, differentiable)


def _image(name: str, call: Function) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.real(*inputs.images)
        return lambda: call(inputs.torch.nn.functional, x)

    enter(name, make)


_matrix("x @ x.T", lambda torch, x: x @ x.t())
_matrix("outer", lambda torch, x: torch.outer(x[:, 0], x[0]))
_matrix("mv", lambda torch, x: torch.mv(x, x[0]))
_matrix("dot", lambda torch, x: torch.dot(x.view(-1), x.view(-1)))
_matrix("einsum ij,ij->i", lambda torch, x: torch.einsum("ij,ij->i", x, x))
_matrix("cosine_similarity", lambda torch, x: torch.cosine_similarity(x, x * 2, 1))
_matrix("normalize", lambda torch, x: torch.nn.functional.normalize(x, dim=1))
_matrix("layer_norm", lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[1:]))
_matrix("glu", lambda torch, x: torch.nn.functional.glu(x, 0))
_matrix("cdist", lambda torch, x: torch.cdist(x[:, :2], x[:, :2]))
_matrix("fft.rfft", lambda torch, x: torch.fft.rfft(x).real)
_matrix("fft.fft", lambda torch, x: torch.fft.fft(x).real)


def _bmm(inputs: Inputs) -> Call:
    side = {10: 2, 10_000: 16, 1_000_000: 64}[inputs.size]
    batch = max(1, inputs.size // side**2)
    x, y = inputs.real(batch, side, side), inputs.real(batch, side, side)
    return lambda: inputs.torch.bmm(x, y)


def _solve(inputs: Inputs) -> Call:
    side = {10: 3, 10_000: 60, 1_000_000: 200}[inputs.size]
    x, y = inputs.real(side, side), inputs.real(side)
    return lambda: inputs.torch.linalg.solve(x, y)


def _linear(inputs: Inputs) -> Call:
    rows, columns = inputs.square
    x, weight, bias = inputs.real(rows, columns), inputs.real(10, columns), inputs.real(10)
    return lambda: inputs.torch.nn.functional.linear(x, weight, bias)


enter("bmm", _bmm)
enter("linalg.solve", _solve)
enter("linear", _linear)


def _loss(name: str, low: float, high: float) -> None:
    def make(inputs: Inputs) -> Call:
        function = found(inputs.torch, f"nn.functional.{name}")
        x, target = inputs.between(low, high), inputs.fixed(low, high)
        return lambda: function(x, target)

    enter(name, make)


for _name in (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "soft_margin_loss",
    "binary_cross_entropy_with_logits",
):
    _loss(_name, -2, 2)
for _name in ("binary_cross_entropy", "poisson_nll_loss"):
    _loss(_name, 0.05, 0.95)


def _kl_div(inputs: Inputs) -> Call:
    x, target = inputs.between(-4, 0), inputs.fixed(0.1, 1)
    return lambda: inputs.torch.nn.functional.kl_div(x, target, reduction="sum")


def _cross_entropy(inputs: Inputs) -> Call:
    rows, columns = inputs.square
    x, target = inputs.real(rows, columns), inputs.whole(0, columns, rows)
    return lambda: inputs.torch.nn.functional.cross_entropy(x, target)


def _one_hot(inputs: Inputs) -> Call:
    rows, columns = inputs.square
    index = inputs.whole(0, columns, rows)
    return lambda: inputs.torch.nn.functional.one_hot(index, columns)


def _batch_norm(inputs: Inputs) -> Call:
    x = inputs.real(*inputs.images)
    return lambda: inputs.torch.nn.functional.batch_norm(x, None, None, training=True)


def _conv2d(inputs: Inputs) -> Call:
    x, weight = inputs.real(*inputs.images), inputs.real(8, inputs.images[1], 3, 3)
    return lambda: inputs.torch.nn.functional.conv2d(x, weight, padding=1)


def _conv1d(inputs: Inputs) -> Call:
    rows, columns = inputs.square
    x, weight = inputs.real(1, rows, columns), inputs.real(4, rows, 3)
    return lambda: inputs.torch.nn.functional.conv1d(x, weight, padding=1)


def _grid_sample(mode: str) -> None:
    def make(inputs: Inputs) -> Call:
        batch, _, height, width = inputs.images
        x, grid = inputs.real(*inputs.images), inputs.between(-1.1, 1.1, batch, height, width, 2)
        sample = inputs.torch.nn.functional.grid_sample
        return lambda: sample(x, grid, mode, align_corners=False)

    enter(f"grid_sample, {mode}", make)


enter("kl_div", _kl_div)
enter("cross_entropy", _cross_entropy)
enter("one_hot", _one_hot, False)
enter("batch_norm", _batch_norm)
enter("conv2d", _conv2d)
enter("conv1d", _conv1d)
_grid_sample("bilinear")
_grid_sample("nearest")
_grid_sample("bicubic")
_image("max_pool2d", lambda nn, x: nn.max_pool2d(x, 2))
_image("avg_pool2d", lambda nn, x: nn.avg_pool2d(x, 2))
_image("adaptive_avg_pool2d", lambda nn, x: nn.adaptive_avg_pool2d(x, 1))
_image("interpolate, nearest", lambda nn, x: nn.interpolate(x, scale_factor=2))
_image("interpolate, bilinear", lambda nn, x: nn.interpolate(x, scale_factor=2, mode="bilinear"))
_image("interpolate, bicubic", lambda nn, x: nn.interpolate(x, scale_factor=2, mode="bicubic"))
_image("unfold of images", lambda nn, x: nn.unfold(x, 3))
_image("pad, reflect", lambda nn, x: nn.pad(x, (1, 1, 1, 1), mode="reflect"))
