"""Ops on large tensors of each layout and dtype, in place and not: values, strides and what lies beside a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential

SIZE = (2, 6, 18, 20)
DTYPES = ["float32", "bfloat16", "float16", "int64", "uint8", "bool"]
FLOATS = DTYPES[:3]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "channels last": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "sliced": lambda x: x.repeat(1, 1, 1, 2).clone()[..., 1 : x.shape[-1] + 1],
    "every second": lambda x: x.repeat_interleave(2, -1).clone()[..., ::2],
    "expanded": lambda x: x[:, :1].expand(x.shape),
}
CHANGES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "abs_": lambda T, x, y, m: x.abs_(),
    "neg_": lambda T, x, y, m: x.neg_(),
    "exp_": lambda T, x, y, m: x.exp_(),
    "zero_": lambda T, x, y, m: x.zero_(),
    "fill_": lambda T, x, y, m: x.fill_(3),
    "clamp_": lambda T, x, y, m: x.clamp_(1, 3),
    "clamp_ from below": lambda T, x, y, m: x.clamp_(min=2),
    "clamp_ by floats": lambda T, x, y, m: x.clamp_(0.3, 1.7),
    "clip_, one bound a number": lambda T, x, y, m: x.clip_(1, None),
    "add_": lambda T, x, y, m: x.add_(2),
    "sub_": lambda T, x, y, m: x.sub_(0.37),
    "mul_": lambda T, x, y, m: x.mul_(3),
    "add_ with a factor": lambda T, x, y, m: x.add_(y, alpha=0.5),
    "add_ of a row": lambda T, x, y, m: x.add_(y[0, 0, 0]),
    "mul_ of a mask": lambda T, x, y, m: x.mul_(m),
    "lerp_": lambda T, x, y, m: x.lerp_(y, 0.25),
    "silu, in place": lambda T, x, y, m: T.nn.functional.silu(x, inplace=True),
    "hardswish, in place": lambda T, x, y, m: T.nn.functional.hardswish(x, inplace=True),
    "leaky_relu_": lambda T, x, y, m: T.nn.functional.leaky_relu_(x, 0.2),
    "hardtanh_": lambda T, x, y, m: T.nn.functional.hardtanh_(x, 1, 2),
    "masked_fill_": lambda T, x, y, m: x.masked_fill_(m, 1),
    "masked_fill_ by rows": lambda T, x, y, m: x.masked_fill_(m[:, :1], 1),
    "masked_fill_ by columns": lambda T, x, y, m: x.masked_fill_(m[..., :1], 1),
    "masked_fill_ by its own": lambda T, x, y, m: x.masked_fill_(x.bool(), 0),
    "x[m] = 1": lambda T, x, y, m: x.__setitem__(m, 1),
    "x[m] = a tensor's number": lambda T, x, y, m: x.__setitem__(m, y[0, 0, 0, 1]),
    "scatter_": lambda T, x, y, m: x.scatter_(2, _places(T, x), y[:, :, :1].expand(y.shape)),
    "scatter_add_": lambda T, x, y, m: x.scatter_add_(3, _places(T, x), y),
    "index_add_ along 1": lambda T, x, y, m: x.index_add_(1, T.tensor([3, 0, 5, 3, 1, 2]), y),
    "index_add_ along 3": lambda T, x, y, m: x.index_add_(3, T.arange(20) * 7 % 20, y),
}
RESULTS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "exp": lambda T, x, y, m: x.exp(),
    "tanh": lambda T, x, y, m: x.tanh(),
    "clamp": lambda T, x, y, m: x.clamp(1, 2),
    "where": lambda T, x, y, m: T.where(m, x, y),
    "where, turned round": lambda T, x, y, m: T.where(m, y, x),
    "where, of a turned mask": lambda T, x, y, m: T.where(m.transpose(2, 1).contiguous().transpose(2, 1), x, y),
    "where, beside a number": lambda T, x, y, m: T.where(m, x, 2),
    "where, of a row": lambda T, x, y, m: T.where(m[0, 0, 0], x, y),
    "masked_fill": lambda T, x, y, m: x.masked_fill(m, 1),
    "addcmul": lambda T, x, y, m: T.addcmul(x, y, x, value=2),
    "threshold's derivative": lambda T, x, y, m: T.ops.aten.threshold_backward(y.float(), x.float(), 1),
    "gather": lambda T, x, y, m: x.gather(2, _places(T, x)),
    "index_select of 1": lambda T, x, y, m: x.index_select(1, T.tensor([3, 0, 5, 3, 1, 2])),
    "index_select of a few": lambda T, x, y, m: x.index_select(3, T.tensor([3, 0])),
    "cat with an empty one": lambda T, x, y, m: T.cat([T.empty(0, dtype=x.dtype), x, T.empty(0, dtype=x.dtype)], 2),
    "sum over 1": lambda T, x, y, m: x.sum(1),
    "sum over (0, 2, 3)": lambda T, x, y, m: x.sum((0, 2, 3), keepdim=True),
    "amax over (1, 3)": lambda T, x, y, m: x.amax((1, 3)),
    "amax over -1": lambda T, x, y, m: x.amax(-1),
    "max over -1": lambda T, x, y, m: x.max(-1).values,
    "where the largest is": lambda T, x, y, m: x.max(-1).indices,
    "argmin over 2": lambda T, x, y, m: x.argmin(2),
    "roll": lambda T, x, y, m: x.roll(5, 3),
    "roll along two": lambda T, x, y, m: x.roll((2, -3), (1, 2)),
    "roll by nothing": lambda T, x, y, m: x.roll((2, 20), (1, 3)),
    "pow": lambda T, x, y, m: x.pow(2),
}


def _places(T: Any, x: Any) -> Any:
    """A position for each element, in a mixed order."""
    return (T.arange(x.numel()) * 11 % 18).reshape(x.shape)


def _tensors(T: Any, dtype: str, layout: str) -> tuple[Any, Any, Any, Any]:
    """A tensor of a layout and what it is a part of, one that is contiguous, and a mask."""
    numbers = T.arange(2 * 6 * 18 * 20).reshape(SIZE)
    whole = (numbers * 7 % 5).to(getattr(T, dtype))
    if dtype in FLOATS:
        whole = whole / 2 - 0.25
    x = LAYOUTS[layout](whole.clone())
    return x, x if x._base is None else x._base, whole.flip(-1), numbers % 3 == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CHANGES)
@differential
def test_changes(T: Any, name: str, layout: str) -> Any:
    found: list[Any] = []
    for dtype in DTYPES:
        x, whole, y, mask = _tensors(T, dtype, layout)
        try:
            CHANGES[name](T, x, y, mask)
        except (RuntimeError, NotImplementedError, TypeError):
            found.append("refused")
        else:
            found += [x, whole, x.stride()]
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", RESULTS)
@differential
def test_results(T: Any, name: str, layout: str) -> Any:
    found: list[Any] = []
    for dtype in DTYPES:
        x, _, y, mask = _tensors(T, dtype, layout)
        try:
            result = RESULTS[name](T, x, y, mask)
        except (RuntimeError, NotImplementedError, TypeError):
            found.append("refused")
        else:
            found += [result, result.stride()]
    return found
