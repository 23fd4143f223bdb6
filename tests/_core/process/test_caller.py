"""Every node remembers the line of the program that made it."""

from __future__ import annotations

import _thread
import time
from typing import Any

import pytest

import flambeau
from flambeau._core.node import recorded_at
from flambeau._core.process.caller import line_of

ACTIONS: list[Any] = [
    lambda x: x * 2,
    lambda x: flambeau.mul(x, 2),
    lambda x: x.exp(),
    lambda x: x + x.double(),
    lambda x: (x * 1).mul_(x),
    lambda x: (x * 1).sigmoid_(),
    lambda x: flambeau.softmax(x, 0),
    lambda x: x[0],
    lambda x: 1 - x,
    lambda x: x.view(2, 1),
    lambda x: flambeau.cat([x, x]),
    lambda x: x @ x,
    lambda x: x.sum(),
    lambda x: flambeau.nn.functional.mse_loss(x, x * 2),
]


@pytest.mark.parametrize("number", range(len(ACTIONS)))
def test_a_node_knows_its_line(number: int) -> None:
    action = ACTIONS[number]
    node = action(flambeau.ones(2, requires_grad=True)).grad_fn
    file, line, source = line_of(recorded_at(node))
    assert file == __file__
    assert line == action.__code__.co_firstlineno
    assert source.startswith("lambda x:")


def test_an_op_that_no_python_code_called() -> None:
    x = flambeau.ones(2)
    _thread.start_new_thread(x.mul_, (flambeau.full((2,), 3.0),))
    y = flambeau.ones(2, requires_grad=True)
    _thread.start_new_thread(y.exp, ())  # must not fail for lack of a caller
    deadline = time.monotonic() + 10
    while x.tolist() != [3, 3] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert x.tolist() == [3, 3]
