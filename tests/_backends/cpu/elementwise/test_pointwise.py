"""Operands that compiled elementwise kernels must not misread: numbers beside integers, and very many dimensions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

from flambeau._backends.cpu.elementwise.pointwise import pointwise
from tests.support.differential import differential


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
@pytest.mark.parametrize("name", ["xlogy", "special.xlog1py", "special.zeta", "div", "float_power"])
@differential
def test_numbers_beside_integers(T: Any, dtype: str, name: str) -> Any:
    """The quotient's dtype is that of the number, not that of the integers: a kernel for two integers read past it."""
    space, _, own = name.rpartition(".")
    function = getattr(getattr(T, space) if space else T, own)
    found = []
    for count in (5, 9_000):
        x = (T.arange(count) % 5 + 1).to(getattr(T, dtype))
        for number in (2, 3.5, True):
            found += [function(x, number), function(number, x)]
    return found


@pytest.mark.parametrize("dims", [16, 17, 19])
@differential
def test_more_dimensions_than_a_kernel_has_loops(T: Any, dims: int) -> Any:
    x = (T.arange(2**dims) % 7 / 7).reshape([2] * dims)
    turned = x.permute(*reversed(range(dims)))
    row = (T.arange(2 ** (dims // 2)) % 5 / 5).reshape([2, 1] * (dims // 2) + [1] * (dims % 2))
    part = turned[:, 0].clone().requires_grad_()
    (part[:, 1] * row.permute(*reversed(range(dims)))[:, 0, 0]).exp().mean().backward()
    changed = turned.clone()
    changed[0, :, 1].add_(row[0, :, 0])
    results = [turned + row, T.xlogy(turned, row + 1), T.nn.functional.gelu(turned[:, 1]), turned[..., 0, :] * 2.5]
    return [each.sum((0, 1, 2, 3)).reshape(-1)[:40] for each in (*results, changed)], part.grad.reshape(-1)[:40]


def test_a_kept_plan_says_nothing_about_how_others_want_their_results_laid_out() -> None:
    single = np.dtype(np.float32)
    kernel = pointwise(operator.add, (single, single), single)
    assert kernel is not None
    rows, turned = np.ones((80, 96), single), np.ones((96, 80), single).T
    assert kernel.many(rows, turned)[0].strides == rows.strides
    for _ in range(2):
        assert kernel.many(rows, turned, like=(turned, rows))[0].strides == turned.strides
        assert kernel.many(rows, turned)[0].strides == rows.strides
        assert kernel.many(turned, rows[:1])[0].strides == turned.strides
        assert kernel.binary(rows, turned).strides == rows.strides
        assert kernel.binary(turned, rows).strides == turned.strides
        assert kernel.binary(rows[:1], turned).strides == turned.strides
        assert kernel.binary(turned[:, :1], rows[:1]).strides == rows.strides


@pytest.mark.parametrize("other", [(96,), (80, 1), (1, 96), (1, 1), (3, 80, 96), (3, 1, 1), (2, 96)])
@differential
def test_operands_that_broadcast(T: Any, other: tuple[int, ...]) -> Any:
    """A second call finds what the first one found out about such operands."""
    found = []
    for turned in (False, True):
        x = (T.arange(80 * 96) % 7 / 7).reshape(96, 80).t() if turned else (T.arange(80 * 96) % 5 / 5).reshape(80, 96)
        y = (T.arange(math.prod(other)) % 3 / 3).reshape(other)
        for _ in range(2):
            try:
                results = [x * y, x - y, T.maximum(x[::2], y) if len(other) == 1 else x.atan2(y), -x, (x * y).neg()]
            except RuntimeError as error:
                found.append("must match the size" in str(error))
                continue
            found.append([(each, each.stride()) for each in results])
    return found


@pytest.mark.parametrize("layout", ["gaps", "turned", "spread", "turned and spread"])
@differential
def test_a_kept_plan_takes_the_number_of_each_call(T: Any, layout: str) -> Any:
    """The first call of a layout makes the plan that the next ones run."""
    whole = (T.arange(60 * 2 * 96) % 13 / 13).reshape(60, 2, 96)
    operand = {
        "gaps": whole[:, 0],
        "turned": whole.permute(2, 0, 1),
        "spread": whole[:, :1, :1].expand(60, 2, 96),
        "turned and spread": whole.permute(2, 0, 1)[:, :, :1].expand(96, 60, 5),
    }[layout]
    found = []
    for number in (2.5, -3.0, 7, float("inf"), 0.5):
        found += [operand * number, number - operand, operand / number, operand > number]
    return found, [each.stride() for each in found]


def test_a_plan_with_a_number_is_kept() -> None:
    single = np.dtype(np.float32)
    kernel = pointwise(operator.mul, (single, single), single)
    assert kernel is not None
    with_gaps = np.ones((80, 96), single)[:, ::2]
    assert [kernel.many(with_gaps, number)[0][3, 4] for number in (2.0, 3.0)] == [2, 3]
    assert len(kernel._plans) == 1
