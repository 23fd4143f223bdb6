"""The networks of `tests/training`, without their training: each with the arguments of its first call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from ..training import alike, test_attention, test_convolutional, test_perceptrons, test_recurrent

_FILES = (test_attention, test_convolutional, test_perceptrons, test_recurrent)

SCENARIOS: dict[str, Callable[[Any], Any]] = {
    name.removeprefix("test_"): test.scenario
    for file in _FILES
    for name, test in vars(file).items()
    if hasattr(test, "scenario")
}
"""By name the functions that build and train the networks."""


class Network(NamedTuple):
    """A module and the arguments that it was called with first."""

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Stop(Exception):
    """Ends a scenario when the network has been called."""


@contextmanager
def _training_replaced(train: Callable[..., Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for file in _FILES:
            patch.setattr(file, "train", train)
        yield


def network(T: Any, name: str) -> Network:
    """The network of a scenario, as it is before its first step, from seed 0; of several the one called first."""
    found: list[Network] = []

    def train(T: Any, model: Any, step: Callable[..., float], data: Any, size: int) -> Any:
        model.train()

        def note(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            found.append(Network(module, args, kwargs))
            raise _Stop

        inner = [each for each in model.modules() if type(each).__name__ not in ("ModuleList", "ModuleDict")]
        hooks = [each.register_forward_pre_hook(note, with_kwargs=True) for each in inner]
        try:
            step(*[each[:size] for each in data])
        except _Stop:
            pass
        finally:
            for hook in hooks:
                hook.remove()
        return alike.Run({}, [], [])

    with _training_replaced(train), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        T.manual_seed(0)
        SCENARIOS[name](T)
    return found[0]
