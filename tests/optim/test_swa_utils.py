"""Averaged models, and the schedule for them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _model(T: Any, seed: int) -> Any:
    T.manual_seed(seed)
    return T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Linear(4, 2))


def _utilities(T: Any) -> Any:
    return T.optim.swa_utils


@pytest.mark.parametrize(
    ("way", "use_buffers"),
    [
        (way, use_buffers)
        for way in ("mean", "avg_fn", "multi_avg_fn", "ema", "multi ema", "multi mean")
        for use_buffers in (False, True)
        if (way, use_buffers) != ("multi mean", True)  # which cannot average the counter of batches
    ],
)
@differential
def test_averages(T: Any, way: str, use_buffers: bool) -> Any:
    swa = _utilities(T)
    options: dict[str, Any] = {
        "mean": {},
        "avg_fn": {"avg_fn": lambda average, value, count: average + (value - average) / (count + 2)},
        "multi_avg_fn": {"multi_avg_fn": lambda averages, values, count: T._foreach_add_(averages, values)},
        "ema": {"avg_fn": swa.get_ema_avg_fn(0.8)},
        "multi ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8)},
        "multi mean": {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    }[way]
    averaged = swa.AveragedModel(_model(T, 0), use_buffers=use_buffers, **options)
    for seed in range(1, 4):
        model = _model(T, seed)
        model(T.ones(2, 3) * T.tensor([[1.0], [3.0]]))
        averaged.update_parameters(model)
    state = averaged.state_dict()
    averaged.eval()
    return list(state), list(state.values()), averaged(T.ones(1, 3)).detach()


@differential
def test_wrong_options(T: Any) -> Any:
    swa = _utilities(T)
    both = {"avg_fn": lambda *_: None, "multi_avg_fn": lambda *_: None}
    optimizer = T.optim.SGD([T.zeros(1)], lr=0.1)
    return (
        outcome(lambda: swa.AveragedModel(_model(T, 0), **both), "Only one of avg_fn and multi_avg_fn"),
        outcome(lambda: swa.get_ema_avg_fn(1.5), "Invalid decay value 1.5"),
        outcome(lambda: swa.get_ema_multi_avg_fn(-1), "Invalid decay value -1"),
        outcome(lambda: swa.SWALR(optimizer, 0.1, anneal_strategy="x"), "anneal_strategy must be one of"),
        outcome(lambda: swa.SWALR(optimizer, 0.1, anneal_epochs=-1), "anneal_epochs must be equal or greater than 0"),
        outcome(lambda: swa.SWALR(optimizer, [0.1, 0.2]), "must have the same length as optimizer.param_groups"),
    )


@pytest.mark.parametrize("wrapped", [False, True])
@differential
def test_statistics_are_computed_anew(T: Any, wrapped: bool) -> Any:
    model = _model(T, 0)
    inputs = [T.arange(6.0).reshape(2, 3) * each for each in (1, -2, 5)]
    model(inputs[0])
    model.eval()
    _utilities(T).update_bn([(each, None) for each in inputs] if wrapped else inputs, model, device="cpu")
    layer = model[1]
    plain = T.nn.Linear(2, 2)
    _utilities(T).update_bn(inputs, plain)
    return layer.running_mean, layer.running_var, layer.num_batches_tracked, layer.momentum, model.training


@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 4}, {"anneal_epochs": 0}])
@differential
def test_schedule(T: Any, options: Any) -> Any:
    groups = [{"params": [T.zeros(1)], "lr": rate} for rate in (0.5, 0.1)]
    optimizer = T.optim.SGD(groups)
    before = T.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    scheduler = _utilities(T).SWALR(optimizer, [0.05, 0.2], **options)
    seen = []
    for step in range(20):
        optimizer.step()
        (before if step < 5 else scheduler).step()
        seen.append([each["lr"] for each in optimizer.param_groups])
    other = _utilities(T).SWALR(T.optim.SGD([{"params": [T.zeros(1)]}, {"params": [T.zeros(1)]}]), 0.1)
    other.load_state_dict(scheduler.state_dict())
    return seen, scheduler.state_dict(), other.state_dict(), math.isclose(seen[-1][0], 0.05)
