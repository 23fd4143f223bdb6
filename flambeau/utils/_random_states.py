"""The states of random generators, of whichever library, as values that a safe file can hold."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.generator import Generator
from .data._utils.randomness import process_states, restore_process

State = dict[str, Any]


class RandomStates:
    """The generators of the process (Flambeau's, Python's and NumPy's) and further ones."""

    def __init__(self, generators: Any) -> None:
        listed = list(generators) if isinstance(generators, Sequence) else [generators]
        for position, generator in enumerate(listed):
            if _kind(generator) is None:
                raise TypeError(
                    "generators must be a generator or a list of them: flambeau.Generator, random.Random, "
                    f"numpy.random.Generator or RandomState, but generators[{position}] is {type(generator).__name__}"
                )
        self.generators = listed

    def kinds(self) -> list[str]:
        """What the further generators are, in their order."""
        return [str(_kind(each)) for each in self.generators]

    def states(self) -> State:
        """Where all generators stand."""
        return {"process": process_states(), "further": [_state(each) for each in self.generators]}

    def restore(self, states: State) -> None:
        """Continue from what `states` gave."""
        restore_process(states["process"])
        for generator, state in zip(self.generators, states["further"], strict=True):
            _restore(generator, state)


def _kind(generator: Any) -> str | None:
    if isinstance(generator, Generator):
        return "flambeau.Generator"
    if isinstance(generator, random.Random):
        return "random.Random"
    if isinstance(generator, np.random.RandomState):
        return "numpy.random.RandomState"
    if isinstance(generator, np.random.Generator):
        return f"numpy.random.Generator of {type(generator.bit_generator).__name__}"
    return None


def _state(generator: Any) -> Any:
    if isinstance(generator, Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return copy.deepcopy(generator.bit_generator.state)


def _restore(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)
