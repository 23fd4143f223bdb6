"""Convolutions on a device beside PyTorch's: layouts, groups, transposes, second calls, addresses between packs.

On the simulated device PyTorch plays the vendor's library, and is handed the plans and the addresses that it would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch as pytorch

import flambeau as torch
from flambeau._backends.cuda.arrays.array import over
from flambeau._backends.cuda.convolution import conv
from flambeau._backends.cuda.cudnn.convolutions import FORWARD, OF_INPUT
from flambeau._backends.cuda.runtime.driver import driver
from tests.cuda.on_device.conftest import is_simulated


class _ByPyTorch:
    """A plan, computed in the host's memory."""

    def __init__(self, product: int, dtype: str, forms: Any, geometry: Any) -> None:
        self.product, self.forms = product, forms
        self.stride, self.padding, self.dilation, self.groups = geometry

    def __call__(self, *places: int) -> None:
        assert not any(place % 16 for place in places)
        simulated: Any = driver()
        windows = [
            simulated._window(over(simulated, place, form.shape, form.dtype, form.strides))
            for form, place in zip(self.forms, places, strict=True)
        ]
        x, w, y = (pytorch.from_numpy(each) for each in windows)
        options = (self.stride, self.padding, self.dilation)
        if self.product == FORWARD:
            y.copy_(pytorch.convolution(x, w, None, *options, False, (0,) * len(self.stride), self.groups))
            return
        wanted = [self.product == OF_INPUT, self.product != OF_INPUT, False]
        gradients = pytorch.ops.aten.convolution_backward(
            y, x, w, None, *options, False, [0] * len(self.stride), self.groups, wanted
        )
        target, found = (x, gradients[0]) if wanted[0] else (w, gradients[1])
        target.copy_(found)


@pytest.fixture(autouse=True)
def _library() -> Iterator[None]:
    if not is_simulated():
        yield
        return
    with (
        mock.patch.multiple(conv, library=lambda: True, Convolution=_ByPyTorch),
        mock.patch.dict(conv._plans, clear=True),
        mock.patch.dict(conv._calls, clear=True),
        mock.patch.dict(conv._backward_calls, clear=True),
    ):
        yield


CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any], bool]] = {
    "images": ("conv2d", (2, 4, 7, 6), (8, 4, 3, 3), {"padding": 1, "stride": 2}, False),
    "channels last": ("conv2d", (2, 4, 7, 6), (8, 4, 3, 3), {"padding": 1}, True),
    "one by one, channels last": ("conv2d", (2, 4, 5, 5), (8, 4, 1, 1), {}, True),
    "groups": ("conv2d", (2, 4, 7, 6), (8, 2, 3, 3), {"groups": 2, "dilation": 2}, False),
    "transposed": ("conv_transpose2d", (2, 4, 5, 5), (4, 8, 3, 3), {"stride": 2, "output_padding": 1}, False),
    "transposed, channels last": ("conv_transpose2d", (2, 4, 5, 5), (4, 8, 3, 3), {"stride": 2}, True),
    "signals": ("conv1d", (2, 4, 9), (8, 4, 3), {"padding": 1}, False),
    "volumes": ("conv3d", (1, 2, 4, 5, 4), (4, 2, 3, 3, 3), {"padding": 1}, False),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients(name: str) -> None:
    function, shape, kernel, options, last = CASES[name]
    generator = pytorch.Generator().manual_seed(0)
    outputs = kernel[1] * options.get("groups", 1) if "transpose" in function else kernel[0]
    numbers = [pytorch.randn(each, generator=generator) for each in (shape, kernel, (outputs,))]
    found = [_run(frame, function, numbers, options, last) for frame in (torch, pytorch)]
    for mine, wanted in zip(*found, strict=True):
        assert mine.shape == tuple(wanted.shape)
        assert abs(mine - wanted).max() <= 1e-5 * abs(wanted).max()


def _run(frame: Any, function: str, numbers: Any, options: dict[str, Any], last: bool) -> list[Any]:
    """The result and the gradients, of the second of two calls."""
    place = "cpu" if frame is pytorch else "cuda"
    given = [frame.tensor(each.numpy()).to(place) for each in numbers]
    if last:
        given[:2] = [each.to(memory_format=frame.channels_last) for each in given[:2]]
    for each in given:
        each.requires_grad_()
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for _ in range(2):
            result = getattr(frame.nn.functional, function)(*given, **options)
            gradients = frame.autograd.grad(result.square().sum(), given)
    return [each.detach().cpu().numpy() for each in (result, *gradients)]


def test_an_address_between_packs() -> None:
    held = torch.arange(65.0).cuda()
    image = held[1:].view(1, 4, 4, 4)
    weight = torch.ones(4, 4, 1, 1).cuda()
    found = torch.nn.functional.conv2d(image, weight)
    assert found.cpu()[0, 0].tolist() == image.cpu()[0].sum(0).tolist()


DEPTHWISE: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "of a signal, causal": ("conv1d", (4, 6, 32), (4,), {"padding": 3}),
    "of a signal, in steps": ("conv1d", (2, 3, 17), (5,), {"padding": 2, "stride": 3, "dilation": 2}),
    "of a signal, transposed": ("conv_transpose1d", (2, 4, 9), (4,), {"stride": 2, "padding": 1}),
    "padded": ("conv2d", (2, 5, 7, 6), (3, 3), {"padding": 1}),
    "in steps": ("conv2d", (3, 4, 9, 10), (5, 5), {"padding": 2, "stride": 2}),
    "wide": ("conv2d", (2, 3, 6, 13), (1, 7), {"padding": (0, 3), "stride": (2, 1)}),
    "dilated": ("conv2d", (1, 4, 11, 9), (3, 2), {"padding": (2, 1), "dilation": (2, 3)}),
    "larger than the image": ("conv2d", (4, 6, 2, 2), (7, 7), {"padding": 3}),
    "many lines": ("conv2d", (9, 2, 20, 5), (3, 3), {"padding": 1}),
    "transposed": ("conv_transpose2d", (2, 4, 5, 6), (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", DEPTHWISE)
def test_kernels_for_each_channel_of_halves(name: str, bias: bool, dtype: str) -> None:
    """Generated kernels; the library is not asked."""
    function, shape, kernel, options = DEPTHWISE[name]
    generator, channels = pytorch.Generator().manual_seed(0), shape[1]
    sizes = (shape, (channels, 1, *kernel), (channels,))[: 2 + bias]
    halves = [pytorch.randn(each, generator=generator).to(getattr(pytorch, dtype)) for each in sizes]
    wanted = [each.float().requires_grad_() for each in halves]
    given = [torch.tensor(each.float().numpy()).to("cuda", getattr(torch, dtype)).requires_grad_() for each in halves]
    options = {**options, "groups": channels}
    with mock.patch.object(conv, "Convolution", None):
        found = getattr(torch.nn.functional, function)(*given, **options)
        weights = pytorch.linspace(-1, 1, found.numel()).reshape(found.shape).to(getattr(pytorch, dtype))
        ours = torch.tensor(weights.float().numpy()).to("cuda", getattr(torch, dtype))
        gradients = torch.autograd.grad(found, given, ours)
    expected = getattr(pytorch.nn.functional, function)(*wanted, **options)
    expected_gradients = pytorch.autograd.grad(expected, wanted, weights.float())
    step = pytorch.finfo(getattr(pytorch, dtype)).eps
    for mine, theirs in zip((found, *gradients), (expected, *expected_gradients), strict=True):
        assert mine.dtype == getattr(torch, dtype)
        assert mine.shape == tuple(theirs.shape)
        assert mine.is_contiguous()
        exact = theirs.detach().numpy()
        bound = step * abs(exact) + 1e-5
        if mine is found and bias and "transpose" in function:  # rounded before the bias is added, too
            bound += step * abs(exact - wanted[2].detach().numpy().reshape(-1, *[1] * len(kernel)))
        assert (abs(mine.detach().float().cpu().numpy() - exact) <= bound).all()
