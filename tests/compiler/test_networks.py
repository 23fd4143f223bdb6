"""Whole networks, trained compiled: the same bits as without."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import flambeau
from flambeau.compiler._compiled import Compiled

from ..training import alike
from .test_capture import NETWORKS

STEPS = 8

IN_PARTS = {
    "bidirectional_lstm_with_packed_sequences": "are others each time",  # lengths
    "dcgan": "looks at the elements",  # of two losses
    "gru_seq2seq": "are others each time",  # what random numbers decide
    "lstm_with_projection_and_cells": "looks at the elements",
    "mixed_normalisations": "looks at the elements",  # a count of batches without momentum
    "shared_weights_and_control_flow": "are others each time",
    "speech_with_ctc": "looks at the elements",  # lengths
    "word_bags": "are others each time",  # lengths
}
"""Networks whose steps do something that is not compiled, and what that is: the rest of them is."""

LEFT_ALONE = {"closures": "may be another the next time"}  # the optimizer calls a function
"""Networks of which nothing is compiled."""


@pytest.fixture(autouse=True)
def some_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(alike, "STEPS", STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def trained(name: str) -> Any:
    flambeau.manual_seed(0)
    return NETWORKS[name](flambeau)


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_compiled_steps_give_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in IN_PARTS:
        monkeypatch.setattr(alike, "STEPS", 3 * STEPS)  # each part is watched for some calls, too
        monkeypatch.setattr("flambeau.compiler.capture.effort._QUIET_CALLS", 10**6)  # whatever is quicker here
    plain = trained(name)
    compiled: list[Compiled] = []

    def around(step: Callable[..., float], batch: Sequence[Any]) -> float:
        if not compiled:
            compiled.append(Compiled(step))
        result: float = compiled[0](*batch)
        return result

    monkeypatch.setattr(alike, "around_step", around)
    again = trained(name)
    assert again.losses == plain.losses
    assert again.drawn_next == plain.drawn_next
    if name in LEFT_ALONE:
        assert not compiled[0].all_programs
        assert LEFT_ALONE[name] in compiled[0].reasons[-1]
    elif name in IN_PARTS:
        assert not compiled[0].programs
        assert compiled[0].all_programs, compiled[0].reasons
        assert IN_PARTS[name] in compiled[0].reasons[-1]
    else:
        assert compiled[0].programs, compiled[0].reasons


def test_attention_of_few_elements_with_dropout() -> None:
    layer = flambeau.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    x = flambeau.linspace(-1, 1, 2 * 5 * 16).reshape(2, 5, 16)

    def losses(compile: Callable[..., Any]) -> list[Any]:
        flambeau.manual_seed(0)
        layer.load_state_dict(before)
        optimizer = flambeau.optim.SGD(layer.parameters(), 0.1)

        @compile
        def step() -> Any:
            optimizer.zero_grad()
            loss = layer(x).sin().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return [step().item() for _ in range(STEPS)] + [each.sum().item() for each in layer.parameters()]

    assert losses(flambeau.compile) == losses(lambda step: step)
