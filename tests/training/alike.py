"""Train one network under PyTorch and under Flambeau with the same seed, and compare how it goes.

A test of this folder is a function of the module that plays `torch`. It builds a network, hands it to `train`, and
returns what that returns. Parameters must start with the same bits, the losses of the first steps must agree to 1e-4,
and both libraries must have drawn as many random numbers.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as pytorch

import flambeau

STEPS = 20
TOLERANCE = 1e-4


class Run(NamedTuple):
    """What training showed."""

    initial: dict[str, np.ndarray]
    losses: list[float]
    drawn_next: list[float]


def parameters_of(model: Any) -> dict[str, np.ndarray]:
    """A copy of every parameter."""
    return {name: value.detach().numpy().copy() for name, value in model.named_parameters()}


def descend(
    T: Any, model: Any, loss: Callable[..., Any], optimizer: Any, scheduler: Any = None, clip: float | None = None
) -> Callable[..., float]:
    """A step of ordinary training: `loss` of a batch, backward, perhaps clipped gradients, optimizer, scheduler."""

    def step(*batch: Any) -> float:
        optimizer.zero_grad()
        value = loss(*batch)
        value.backward()
        if clip is not None:
            T.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return float(value.detach())

    return step


def _plainly(step: Callable[..., float], batch: Sequence[Any]) -> float:
    return step(*batch)


around_step: Callable[[Callable[..., float], Sequence[Any]], float] = _plainly
"""Runs each step: who wants to look at steps puts a function of their own here."""


def train(T: Any, model: Any, step: Callable[..., float], data: Sequence[Any], size: int) -> Run:
    """Make `STEPS` steps over shuffled batches of `size` samples; `data` are tensors with one row for each sample."""
    initial = parameters_of(model)
    model.train()
    losses: list[float] = []
    while len(losses) < STEPS:
        for rows in T.randperm(len(data[0])).split(size):
            batch = [each[rows] for each in data]
            losses.append(around_step(step, batch))
    return Run(initial, losses[:STEPS], T.rand(2).tolist())


def same_training(scenario: Callable[[Any], Run]) -> Callable[[], None]:
    """Turn `def test_x(T)` into a test that trains under both libraries and compares the runs."""

    @functools.wraps(scenario)
    def test() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytorch.manual_seed(0)
            expected = scenario(pytorch)
            flambeau.manual_seed(0)
            actual = scenario(flambeau)
        check(expected, actual)

    test.scenario = scenario  # type: ignore[attr-defined]
    del test.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for a fixture named T
    return test


def check(expected: Run, actual: Run) -> None:
    """Fail where two runs differ, or where nothing was learnt, which would make the comparison idle."""
    assert list(actual.initial) == list(expected.initial)
    for name, value in expected.initial.items():
        np.testing.assert_array_equal(actual.initial[name], value, err_msg=f"initial {name}")
    assert all(map(math.isfinite, expected.losses)), expected.losses
    assert len({round(loss, 6) for loss in expected.losses}) > STEPS // 2, expected.losses
    np.testing.assert_allclose(actual.losses, expected.losses, rtol=TOLERANCE, atol=TOLERANCE)
    assert actual.drawn_next == expected.drawn_next, "one library drew more random numbers"
