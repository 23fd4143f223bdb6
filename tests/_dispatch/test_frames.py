"""How many Python functions run between a call and its kernel: a count, which no load of the machine changes.

The numbers are what there is, and a few more. Whoever adds a function to the way of every op is told here.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as T
from flambeau._dispatch.short_call import CALLS
from flambeau.distributions import Categorical


def _one_pass(loss: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: loss().sum().backward()


def _add_to_row(tensor: Any) -> None:
    tensor[1] += 1


def _cases() -> dict[str, tuple[int, Callable[[], Any]]]:
    a, b, x = T.ones(4, 4), T.ones(4, 4), T.ones(4, 4, requires_grad=True)
    integers, image, rows, numbers = T.ones(4, 4, dtype=T.int64), T.ones(1, 2, 6, 6), T.ones(2, 4), T.tensor([1, 3])
    linear, conv, norm, embedding = T.nn.Linear(4, 4), T.nn.Conv2d(2, 2, 3), T.nn.LayerNorm(4), T.nn.Embedding(8, 4)
    cell, chances = T.nn.LSTMCell(4, 4), T.ones(1, 4, requires_grad=True)
    weight = T.nn.Parameter(T.ones(4))
    weight.grad, adam = T.ones(4), T.optim.Adam([weight])
    return {
        "a * b": (1, lambda: a * b),
        "a + integers": (1, lambda: a + integers),
        "x * b, recorded": (3, lambda: x * b),
        "x.exp(), recorded": (3, lambda: x.exp()),
        "a.sum()": (6, lambda: a.sum()),
        "x @ b, recorded": (7, lambda: x @ b),
        "a.view": (5, lambda: a.view(2, 8)),
        "x.reshape, recorded": (6, lambda: x.reshape(-1)),
        "x[0], recorded": (6, lambda: x[0]),
        "integers == 0": (4, lambda: integers == 0),
        "integers[:1].float()": (17, lambda: integers[:1].float()),
        "a.reshape(-1, 8)": (9, lambda: a.reshape(-1, 8)),
        "cat": (7, lambda: T.cat([a, b])),
        "cat, recorded": (14, lambda: T.cat([x, b])),
        "softmax": (7, lambda: a.softmax(1)),
        "Linear": (13, lambda: linear(rows)),
        "Linear on a vector": (19, lambda: linear(rows[0])),
        "Categorical, log_prob": (114, lambda: Categorical(chances).log_prob(numbers[:1])),
        "Categorical, sample": (44, Categorical(chances).sample),
        "Conv2d": (32, lambda: conv(image)),
        "LayerNorm": (31, lambda: norm(rows)),
        "Embedding": (20, lambda: embedding(numbers)),
        "LSTMCell": (70, lambda: cell(rows)),
        "x * b, backward": (46, _one_pass(lambda: x * b)),
        "Linear, backward": (69, _one_pass(lambda: linear(rows))),
        "Linear on a vector, backward": (82, _one_pass(lambda: linear(rows[0]))),
        "a[1] += 1": (27, lambda: _add_to_row(a)),
        "Adam": (74, adam.step),
        "Conv2d, backward": (101, _one_pass(lambda: conv(image))),
    }


@pytest.mark.parametrize("name", _cases())
def test_calls_stay_short(name: str) -> None:
    most, call = _cases()[name]
    for _ in range(CALLS + 2):  # by then ops have functions of their own
        call()
    count = -1  # without the lambda itself

    def notice(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()  # finalizers of other tests are none of ours
    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    assert count <= most
