"""The networks of `tests/training`, with the inputs of a step: models of every kind that the tests train."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

_FILES = ("attention", "convolutional", "perceptrons", "recurrent")


class Call(NamedTuple):
    """A model and the arguments with which a step of its training calls it."""

    name: str
    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Seen(Exception):
    """The model has been called."""


_LIKE_OTHERS = ("test_fine_tuning", "test_resnext")
"""Large networks of the same layers as another one."""


def names() -> list[tuple[str, str]]:
    """The file and the name of each scenario."""
    return [
        (file, name)
        for file in _FILES
        for name in vars(importlib.import_module(f"tests.training.test_{file}"))
        if name.startswith("test_") and name not in _LIKE_OTHERS
    ]


def network(T: Any, file: str, name: str) -> Call:
    """The model that a scenario trains under one library, and what it is called with."""
    module = importlib.import_module(f"tests.training.test_{file}")
    found: list[Call] = []

    def train(T: Any, model: Any, step: Any, data: Any, size: int) -> Any:
        def note(module: Any, args: Any, kwargs: Any) -> None:
            found.append(Call(name, module, args, kwargs))
            raise _Seen

        for part in _candidates(model):
            part.register_forward_pre_hook(note, with_kwargs=True)
        step(*[each[:size] for each in data])
        raise AssertionError(f"{name} calls no module")

    original, module.train = module.train, train  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            T.manual_seed(0)
            getattr(module, name).scenario(T)
    except _Seen:
        pass
    finally:
        module.train = original  # type: ignore[attr-defined]
    call = found[0]
    for part in _candidates(call.model):
        part._forward_pre_hooks.clear()
        part._forward_pre_hooks_with_kwargs.clear()
    return call


def _candidates(model: Any) -> Iterator[Any]:
    yield model
    yield from model.children()
