"""Compiled steps of recurrent layers beside NumPy's and PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau._backends import tiers


def run(module: Any, cls: str, options: dict[str, Any], with_state: bool) -> list[Any]:
    module.manual_seed(0)
    network = getattr(module.nn, cls)(24, 40, dtype=module.float64, **options)
    rng = np.random.default_rng(0)
    x = module.tensor(rng.standard_normal((13, 9, 24)), requires_grad=True)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [module.tensor(rng.standard_normal((count, 9, 40)), requires_grad=True) for _ in range(2)]
    start = (tuple(states) if cls == "LSTM" else states[0]) if with_state else None
    output, last = network(x, start)
    ends = last if cls == "LSTM" else (last,)
    (output.pow(2).sum() + sum(end.sin().sum() for end in ends)).backward()
    grads = [x.grad, *[parameter.grad for parameter in network.parameters()]]
    if with_state:
        grads += [state.grad for state in (states if cls == "LSTM" else states[:1])]
    return [each.detach().numpy() for each in (output, *ends, *grads)]


@pytest.mark.parametrize("cls", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
@pytest.mark.parametrize("with_state", [False, True])
def test_layers(cls: str, options: dict[str, Any], with_state: bool) -> None:
    assert tiers.generated("recurrent") is not None
    got = run(flambeau, cls, options, with_state)
    with tiers.numpy_only():
        plain = run(flambeau, cls, options, with_state)
    wanted = run(torch, cls, options, with_state)
    for one, two, three in zip(got, plain, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(one, three, rtol=1e-9, atol=1e-11)


def test_only_the_last_state_has_a_gradient() -> None:
    for cls in ("LSTM", "GRU"):
        found = []
        for module in (flambeau, torch):
            module.manual_seed(1)
            network = getattr(module.nn, cls)(32, 64, dtype=module.float64)
            x = module.tensor(np.random.default_rng(2).standard_normal((10, 8, 32)), requires_grad=True)
            last = network(x)[1]
            (last[0] if cls == "LSTM" else last).sum().backward()
            found.append(x.grad.numpy())
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)
