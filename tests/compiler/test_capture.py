"""A step of training as a program of ops: nothing is missing in it, and it gives the same bits again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.compiler.capture import Capture, Value

from ..training import alike, test_attention, test_convolutional, test_perceptrons, test_recurrent

NETWORKS = {
    name.removeprefix("test_"): value.scenario
    for module in (test_attention, test_convolutional, test_perceptrons, test_recurrent)
    for name, value in vars(module).items()
    if hasattr(value, "scenario")
}

Step = Callable[..., float]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(alike, "STEPS", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def bits(tensor: Any) -> bytes:
    return np.ascontiguousarray(tensor._array).tobytes()


def run(name: str) -> list[float]:
    flambeau.manual_seed(0)
    losses: list[float] = NETWORKS[name](flambeau).losses
    return losses


def _numbers(results: Any) -> set[int]:
    if isinstance(results, Value):
        return {results.number}
    return set().union(*map(_numbers, results)) if isinstance(results, list) else set()


def captured_and_replayed(step: Step, batch: Sequence[Any]) -> float:
    """Run a step under capture; then once more, from the same state, without Python: everything must be equal."""
    before = flambeau.get_rng_state()
    with Capture() as capture:
        contents = {id(each._array): each._array.copy() for each in capture.before}
        loss = step(*batch)
    assert not capture.strays, [name for name, _ in capture.strays]
    after = flambeau.get_rng_state()
    found = {number: bits(tensor) for number, tensor in capture.tensors.items()}
    inputs = {number: tensor._array for number, tensor in capture.inputs.items()}
    finally_there = {number: array.copy() for number, array in inputs.items()}
    for array in inputs.values():
        array[...] = contents[id(array)]
    flambeau.set_rng_state(before)
    with flambeau.no_grad():
        again = capture.replay()
    assert again.keys() == found.keys()
    different = [number for number, tensor in again.items() if bits(tensor) != found[number]]
    assert not different, [call.op.name for call in capture.calls if _numbers(call.results) & set(different)]
    assert flambeau.equal(flambeau.get_rng_state(), after)
    for number, array in inputs.items():
        assert array.tobytes() == finally_there[number].tobytes()
    return loss


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_training_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(name)
    monkeypatch.setattr(alike, "around_step", captured_and_replayed)
    assert run(name) == plain  # a watched run is the same program as a plain one


def test_all_networks_are_there() -> None:
    assert len(NETWORKS) >= 33


def test_changes_are_reported() -> None:
    x = flambeau.zeros(3)
    y = x[1:]
    with Capture() as capture:
        y.add_(1)
        x.mul_(2)
        x.normal_()
    written = [call.op.name for call in capture.calls if call.op.writes]
    assert written == ["copy_", "copy_", "normal_"]


def test_reads_are_known_and_hold_for_a_replay() -> None:
    """Where Python looked at elements, a replay with others refuses to go on."""
    x = flambeau.tensor([1.0, 2.0])
    with Capture() as capture:
        y = x * 2 if x.sum().item() > 0 else x - 1
        bool(y[0] > 0), int(y[1]), y.tolist(), flambeau.equal(x, x)
        flambeau.repeat_interleave(x, flambeau.tensor([1, 2]))
    assert [each.op.name for each in capture.reads] == ["item", "item", "item", "elements", "equal"]
    assert not capture.strays
    capture.replay()
    x.neg_()
    with pytest.raises(RuntimeError, match=r"looked at a tensor by item and found 3\.0; now there is -3\.0"):
        capture.replay()
