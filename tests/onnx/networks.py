"""The networks of `tests/training`, each with the arguments of its first step."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import flambeau

_FILES = ("test_attention", "test_convolutional", "test_perceptrons", "test_recurrent")


class Network(NamedTuple):
    """A model and how it was called."""

    model: Any
    args: tuple[Any, ...]


class _FirstStep(Exception):
    """Ends a scenario after one step."""


def names() -> list[str]:
    """All networks."""
    found = []
    for file in _FILES:
        module = importlib.import_module(f"tests.training.{file}")
        found += [f"{file}.{name}" for name, each in vars(module).items() if hasattr(each, "scenario")]
    return found


def network(name: str, monkeypatch: Any) -> Network:
    """The model of a scenario, in evaluation mode; its parts are not trained."""
    file, _, test = name.partition(".")
    module = importlib.import_module(f"tests.training.{file}")
    calls: list[Network] = []

    def train(T: Any, model: Any, step: Callable[..., float], data: Any, size: int) -> Any:
        def note(called: Any, args: tuple[Any, ...]) -> None:
            calls.append(Network(called, args))

        handles = [each.register_forward_pre_hook(note) for each in model.modules()]
        step(*[each[:size] for each in data])
        for handle in handles:
            handle.remove()
        raise _FirstStep

    monkeypatch.setattr(module, "train", train)
    state = flambeau.get_rng_state()
    flambeau.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(module, test).scenario(flambeau)
    except _FirstStep:
        pass
    finally:
        flambeau.set_rng_state(state)
    first = calls[0]
    first.model.eval()
    return first
