"""Elementwise functions of several tensors that lie in memory differently: whose order the result has."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x.contiguous(),
    "channels": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "reversed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "gaps": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "one line": lambda x: x[0, 0, 0],
    "expanded": lambda x: x[:, :1, :, :1].expand(x.shape),
}
OF_TWO: dict[str, Callable[..., Any]] = {
    "add, scaled": lambda T, a, b: T.add(a, b, alpha=2),
    "sub, scaled": lambda T, a, b: T.sub(a, b, alpha=2),
    "rsub": lambda T, a, b: T.rsub(a, b),
    "clamp below": lambda T, a, b: T.clamp(a, min=b),
    "mse_loss": lambda T, a, b: T.nn.functional.mse_loss(*T.broadcast_tensors(a, b), reduction="none"),
    "smooth_l1_loss": lambda T, a, b: T.nn.functional.smooth_l1_loss(*T.broadcast_tensors(a, b), reduction="none"),
    "complex": lambda T, a, b: T.complex(a, b),
    "polar": lambda T, a, b: T.polar(a, b),
    "lerp": lambda T, a, b: T.lerp(a, b, 0.3),
    "threshold_backward": lambda T, a, b: T.ops.aten.threshold_backward(a, b, 1.0),
    "sigmoid_backward": lambda T, a, b: T.ops.aten.sigmoid_backward(a, b),
    "tanh_backward": lambda T, a, b: T.ops.aten.tanh_backward(a, b),
}
OF_THREE: dict[str, Callable[..., Any]] = {
    "addcmul": lambda T, a, b, c: T.addcmul(a, b, c),
    "addcdiv": lambda T, a, b, c: T.addcdiv(a, b, c, value=0.5),
    "clamp": lambda T, a, b, c: T.clamp(a, b, c),
    "lerp": lambda T, a, b, c: T.lerp(a, b, c),
    "where": lambda T, a, b, c: T.where(a > 3, b, c),
}
SIZES = {"small": (2, 3, 4, 5), "large": (4, 3, 32, 64)}


def _results(T: Any, call: Callable[..., Any], count: int, shape: tuple[int, ...]) -> Any:
    values = T.arange(float(flambeau.Size(shape).numel())).reshape(shape).remainder(7).add(0.5)
    strides = {}
    for names in itertools.product(LAYOUTS, repeat=count):
        result = call(T, *(LAYOUTS[name](values) for name in names))
        strides[" ".join(names)] = result.stride(), float(result.abs().sum()) if shape == SIZES["small"] else None
    return strides


@pytest.mark.parametrize("call", OF_TWO.values(), ids=OF_TWO)
@pytest.mark.parametrize("shape", SIZES.values(), ids=SIZES)
@differential
def test_of_two(T: Any, call: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    return _results(T, call, 2, shape)


@pytest.mark.parametrize("call", OF_THREE.values(), ids=OF_THREE)
@differential
def test_of_three(T: Any, call: Callable[..., Any]) -> Any:
    return _results(T, call, 3, SIZES["small"])


@pytest.mark.parametrize("call", [OF_THREE["addcmul"], OF_THREE["clamp"]], ids=["addcmul", "clamp"])
def test_compiled(call: Callable[..., Any]) -> None:
    compiled = flambeau.compile(lambda a, b, c: call(flambeau, a, b, c))
    values = flambeau.arange(120.0).reshape(2, 3, 4, 5)
    for names in (("channels", "rows", "rows"), ("rows", "channels", "reversed"), ("one line", "reversed", "rows")):
        given = [LAYOUTS[name](values) for name in names]
        plain = call(flambeau, *given)
        for _ in range(4):
            result = compiled(*given)
            assert result.stride() == plain.stride(), names
            assert flambeau.equal(result, plain)
