"""Muon with each of its options, beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau

from .both import arrays_of, assert_same, parameters, run

SHAPES = [(3, 4), (6, 2), (5, 5)]
ROUNDING = 2e-3
"""The iteration runs in bfloat16, whose products processors add up in different orders: a bit in eight of a step."""

OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.05},
    {"momentum": 0.5},
    {"momentum": 0.0},
    {"nesterov": False},
    {"weight_decay": 0.0},
    {"weight_decay": 0.5},
    {"ns_steps": 1},
    {"ns_steps": 8},
    {"ns_coefficients": (2.0, -1.5, 0.5)},
    {"eps": 1.0},
    {"adjust_lr_fn": "match_rms_adamw"},
    {
        "momentum": 0.9,
        "nesterov": False,
        "ns_coefficients": (3.0, -3.2, 1.2),
        "ns_steps": 3,
        "eps": 1e-3,
        "weight_decay": 0.02,
        "adjust_lr_fn": "match_rms_adamw",
    },
]


def _after_fifty_steps(framework: Any, options: dict[str, Any], dtype: str = "float64") -> Any:
    params = parameters(framework, dtype, SHAPES)
    optimizer = framework.optim.Muon(params, **{"lr": 0.02, **options})
    run(framework, optimizer, params, 50)
    return arrays_of([params, optimizer.state_dict()["state"]])


@pytest.fixture(scope="module")
def by_default() -> Any:
    return _after_fifty_steps(pytorch, {})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fifty_steps_with_an_option(options: dict[str, Any], by_default: Any) -> None:
    expected = _after_fifty_steps(pytorch, options)
    assert_same(expected, _after_fifty_steps(flambeau, options), ROUNDING)
    distance = max(np.abs(ours - other).max() for ours, other in zip(expected[0], by_default[0], strict=True))
    assert distance > 10 * ROUNDING, "the option makes no difference that the comparison would notice"


def test_fifty_steps_by_default(by_default: Any) -> None:
    assert_same(by_default, _after_fifty_steps(flambeau, {}), ROUNDING)
    assert_same(by_default, _after_fifty_steps(flambeau, {"adjust_lr_fn": "original"}), ROUNDING)


def test_single_precision_and_a_learning_rate_in_a_tensor() -> None:
    for dtype in ("float32", "bfloat16"):
        expected, actual = (_after_fifty_steps(each, {}, dtype) for each in (pytorch, flambeau))
        assert_same(expected, actual, ROUNDING if dtype == "float32" else 0.05)
    in_tensor = _after_fifty_steps(flambeau, {"lr": flambeau.tensor(0.02, dtype=flambeau.float64)})
    assert_same(_after_fifty_steps(flambeau, {}), in_tensor, 1e-12)
