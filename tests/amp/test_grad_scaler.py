"""`GradScaler`: training beside PyTorch, overflows, state, misuse."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch as pytorch

import flambeau
from tests.support.differential import differential, outcome, warned


def _run(T: Any, make: Any, scaler: Any, bad_steps: tuple[int, ...] = (), clip: bool = False) -> list[Any]:
    """Some steps of training, of which some overflow, and what is seen on the way."""
    T.manual_seed(1)
    model = T.nn.Sequential(T.nn.Linear(4, 8), T.nn.Tanh(), T.nn.Linear(8, 1))
    optimizer = make(model.parameters())
    inputs, targets = T.randn(16, 4), T.randn(16, 1)
    seen: list[Any] = []
    for step in range(8):
        optimizer.zero_grad()
        loss = T.nn.functional.mse_loss(model(inputs), targets)
        scaler.scale(loss * (T.inf if step in bad_steps else 1.0)).backward()
        if clip:
            scaler.unscale_(optimizer)
            seen.append(T.nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        result = scaler.step(optimizer)
        scaler.update()
        seen += [scaler.get_scale(), scaler._get_growth_tracker(), result, loss.detach()]
    return [*seen, list(model.parameters()), scaler.state_dict()]


@differential(tolerance=1e-5)
@pytest.mark.parametrize("bad_steps", [(), (0,), (2, 3, 7)])
@pytest.mark.parametrize("clip", [False, True])
def test_training(T, bad_steps, clip):
    scaler = T.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2, growth_factor=4.0, backoff_factor=0.25)
    return _run(T, lambda params: T.optim.SGD(params, lr=0.1, momentum=0.9), scaler, bad_steps, clip)


@differential(tolerance=1e-5)
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_optimizers(T, name, clip):
    """They are told the scale, and unscale and skip by themselves."""
    scaler = T.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    return _run(T, lambda params: getattr(T.optim, name)(params, lr=0.01, fused=True), scaler, (3,), clip)


@differential(tolerance=1e-5)
def test_mixed_precision_training(T):
    model = T.nn.Linear(4, 2)
    optimizer = T.optim.Adam(model.parameters(), lr=0.01)
    scaler = T.amp.GradScaler("cpu", init_scale=8.0)
    inputs = T.randn(8, 4)
    for _ in range(4):
        optimizer.zero_grad()
        with T.autocast("cpu", T.float16):
            loss = model(inputs).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return [(each.detach() * 100).round() for each in model.parameters()]


@differential
def test_two_optimizers(T):
    one, two = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
    first, second = T.optim.SGD([one], lr=1.0), T.optim.SGD([two], lr=1.0)
    scaler = T.amp.GradScaler("cpu", init_scale=4.0)
    losses = scaler.scale([one * 0.5, two * T.inf])
    for each in losses:
        each.backward()
    scaler.step(first)
    scaler.unscale_(second)
    stages = [scaler._per_optimizer_states[id(each)]["stage"].name for each in (first, second)]
    found = [[value.item() for value in scaler._found_inf_per_device(each).values()] for each in (first, second)]
    scaler.step(second)
    scaler.update()
    return one, two, stages, found, scaler.get_scale(), dict(scaler._per_optimizer_states)


@differential
def test_scale_of_nests(T):
    scaler = T.amp.GradScaler("cpu", init_scale=4.0)
    x = T.ones(2)
    before = scaler.get_scale()
    return (
        before,
        scaler.scale(x),
        scaler.scale([x, (x, x)]),
        list(scaler.scale(each for each in [x])),
        scaler.scale(x.half()),
        outcome(lambda: scaler.scale(3), "outputs must be a Tensor or an iterable of Tensors"),
        T.amp.GradScaler("cpu", enabled=False).scale([3]),
    )


@differential
def test_settings_and_state(T):
    scaler = T.amp.GradScaler("cpu", 16.0, 3.0, 0.25, 5)
    seen = [scaler.state_dict(), scaler.is_enabled()]
    scaler.set_growth_factor(5.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    seen += [scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()]
    scaler.scale(T.ones(1))
    scaler.update(8.0)
    seen.append(scaler.get_scale())
    scaler.update(T.tensor(32.0))
    seen.append(scaler.get_scale())
    other = T.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict() | {"_growth_tracker": 3})
    seen += [other.state_dict(), pickle.loads(pickle.dumps(other)).state_dict()]
    other.scale(T.ones(1))
    other.load_state_dict(scaler.state_dict())
    disabled = T.amp.GradScaler("cpu", enabled=False)
    return (
        seen,
        other.state_dict(),
        disabled.state_dict(),
        disabled.load_state_dict({"scale": 3}),
        disabled.get_scale(),
        disabled.update(),
        outcome(lambda: other.load_state_dict({}), "The source state dict is empty"),
        outcome(lambda: other.update(T.ones(2)), "new_scale should be a float or a 1-element"),
        outcome(lambda: other.update(T.ones(1, requires_grad=True)), "requires_grad=False"),
        outcome(lambda: T.amp.GradScaler("cpu", growth_factor=1.0), "The growth factor must be > 1.0"),
        outcome(lambda: T.amp.GradScaler("cpu", backoff_factor=1.0), "The backoff factor must be < 1.0"),
    )


@differential
def test_growth_stops_at_infinity(T):
    weight = T.zeros(1, requires_grad=True)
    optimizer = T.optim.SGD([weight], lr=1.0)
    scaler = T.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    scaler.scale(weight * 0.5).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), scaler._get_growth_tracker(), weight


@differential
def test_order_of_calls(T):
    def scaled():
        weight = T.ones(1, requires_grad=True)
        optimizer = T.optim.SGD([weight], lr=1.0)
        scaler = T.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(weight * 1.0).backward()
        return scaler, optimizer

    def do(*names):
        scaler, optimizer = scaled()
        for name in names:
            getattr(scaler, name)(*([] if name == "update" else [optimizer]))

    def half():
        weight = T.ones(1, dtype=T.float16, requires_grad=True)
        scaler = T.amp.GradScaler("cpu")
        scaler.scale(weight.sum()).backward()
        scaler.unscale_(T.optim.SGD([weight]))

    def nothing_to_step():
        scaler, _ = scaled()
        scaler.step(T.optim.SGD([T.ones(1, requires_grad=True)]))

    optimizer = T.optim.SGD([T.ones(1, requires_grad=True)])
    return (
        outcome(lambda: do("unscale_", "unscale_"), "unscale_() has already been called"),
        outcome(lambda: do("step", "unscale_"), "unscale_() is being called after step()"),
        outcome(lambda: do("step", "step"), "step() has already been called since the last update()"),
        outcome(lambda: do("update"), "No inf checks were recorded prior to update"),
        outcome(lambda: do("step", "update", "unscale_", "step", "update")),
        outcome(lambda: T.amp.GradScaler("cpu").step(optimizer), "Attempted step but _scale is None"),
        outcome(lambda: T.amp.GradScaler("cpu").update(), "Attempted update but _scale is None"),
        outcome(lambda: T.amp.GradScaler("cpu").unscale_(optimizer), "Attempted unscale_ but _scale is None"),
        outcome(lambda: scaled()[0].step(optimizer, closure=lambda: 0), "Closure use is not currently supported"),
        outcome(nothing_to_step, "No inf checks were recorded for this optimizer"),
        outcome(half, "Attempting to unscale FP16 gradients"),
        outcome(lambda: pickle.dumps(_stepped(scaled)), "may only be pickled at the beginning of an iteration"),
    )


def _stepped(scaled: Any) -> Any:
    scaler, optimizer = scaled()
    scaler.step(optimizer)
    return scaler


@differential
def test_without_cuda(T):
    def run():
        scaler = T.amp.GradScaler()
        weight = T.ones(1, requires_grad=True)
        scaler.scale(weight * 1.0).backward()
        optimizer = T.optim.SGD([weight], lr=1.0)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return scaler.is_enabled(), scaler.get_scale(), scaler.state_dict(), weight

    return warned(run, "GradScaler is enabled, but CUDA is not available"), T.amp.GradScaler(
        "cuda", enabled=False
    ).state_dict()


def test_states_are_pytorchs():
    ours, theirs = flambeau.amp.GradScaler("cpu", 4.0), pytorch.amp.GradScaler("cpu", 8.0)
    ours.load_state_dict(theirs.state_dict())
    assert ours.state_dict() == theirs.state_dict()
    assert list(flambeau.amp.grad_scaler.OptState.__members__) == list(pytorch.amp.grad_scaler.OptState.__members__)
