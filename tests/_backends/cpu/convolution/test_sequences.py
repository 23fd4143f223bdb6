"""Convolutions of sequences with a window for each channel: generated code before the vendor's library."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential


def _values(T: Any, *shape: int) -> Any:
    """Few bits each: sums of products of them are exact in any order."""
    return ((T.randint(0, 15, shape) - 7) / 4).float()


_CASES = {
    "as in a state-space layer": ((4, 144, 32), 4, {"padding": 3}),
    "one sample": ((1, 640, 40), 3, {"padding": 1}),
    "strided and dilated": ((3, 96, 65), 3, {"stride": 2, "dilation": 2, "padding": 2}),
    "wide windows": ((2, 64, 90), 31, {"padding": 15}),
    "a window of one": ((4, 256, 48), 1, {}),
    "shorter than a vector": ((8, 512, 9), 3, {"padding": 1}),
    "channels that do not fill vectors": ((5, 37, 60), 5, {"padding": 2}),
}


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("case", _CASES)
@differential
def test_depthwise_sequences(T: Any, case: str, is_turned: bool, has_bias: bool) -> Any:
    """`is_turned`: channels last in memory and with gaps, as a part of a projection is."""
    (batch, channels, length), window, options = _CASES[case]
    T.manual_seed(0)
    x = _values(T, batch, channels, length)
    if is_turned:
        x = _values(T, batch, length, channels + 8)[..., :channels].transpose(1, 2)
    x = x.requires_grad_()
    weight, bias = _values(T, channels, 1, window).requires_grad_(), _values(T, channels).requires_grad_()
    wanted = [x, weight, *([bias] if has_bias else [])]
    result = T.conv1d(x, weight, bias if has_bias else None, groups=channels, **options)
    grads = T.autograd.grad(result, wanted, _values(T, *result.shape))
    back = T.conv_transpose1d(result.detach(), weight.detach(), groups=channels, **options)
    return result, back, *grads


@differential
def test_a_multiple_of_the_channels(T: Any) -> Any:
    """Several windows for a channel, and channels that share one, are other convolutions."""
    T.manual_seed(0)
    x = _values(T, 4, 64, 50).requires_grad_()
    found = []
    for outputs, groups in ((128, 64), (64, 32), (32, 32)):
        weight = _values(T, outputs, 64 // groups, 3).requires_grad_()
        result = T.conv1d(x, weight, None, 1, 1, 1, groups)
        found += [result, *T.autograd.grad(result, [x, weight], _values(T, *result.shape))]
    return found
