"""Whether rounding alone explains that two runs of a program disagree.

A training program that climbs, or that adds up what cancels, makes a large difference of the last bits of its numbers.
The program runs again under PyTorch with every computed number changed at random by at most one unit in the last place.
Where these runs are as far from PyTorch's own as Flambeau is, the program says nothing about Flambeau.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from tests.support.oracle import pytorch

_RUNS = 3
_SPREAD = 8
"""How many times as far as the farthest of these runs a result may be; their numbers are few, and chosen at random."""


def changed_in_the_last_place(seed: int) -> Any:
    """A mode of PyTorch's under which computed numbers are changed."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Changing(TorchDispatchMode):  # type: ignore[misc, unused-ignore]  # PyTorch may be absent, or without types
        def __init__(self) -> None:
            super().__init__()
            self.generator = pytorch.Generator().manual_seed(seed)

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            schema = function._schema
            makes = not any(isinstance(each, pytorch.Tensor) for each in _flat(args))
            if not makes and not schema.is_mutable and not any(each.alias_info for each in schema.returns):
                for each in _flat(result):
                    if isinstance(each, pytorch.Tensor) and each.is_floating_point():
                        self.change(each)
            return result

        def change(self, tensor: Any) -> None:
            """Whole numbers of a few digits are counts, zeros and ones, which nobody has rounded."""
            unit = pytorch.finfo(tensor.dtype).eps
            wide = tensor.double()
            noise = pytorch.rand(wide.shape, generator=self.generator, dtype=wide.dtype) * 2 - 1
            exact = (wide == wide.round()) & (wide.abs() < 1024)
            tensor.copy_(pytorch.where(exact, wide, wide * (1 + unit * noise)))

    return Changing()


def _flat(values: Any) -> Iterator[Any]:
    if isinstance(values, (tuple, list)):
        for each in values:
            yield from _flat(each)
    else:
        yield values


def explains(path: str, expected: Any, noisy: list[Any], left: Any, right: Any) -> bool:
    """Whether two numbers are no farther apart than those of the same tensor in runs with noise.

    The path leads to the numbers within an observation, as `program.differences` writes it.
    """
    if not isinstance(left, float) or not isinstance(right, float):
        return False
    tensor = _steps(path)
    spread = max(_distance(_at(expected, tensor), _at(each, tensor)) for each in noisy)
    return abs(left - right) <= _SPREAD * spread


def _steps(path: str) -> list[str | int]:
    """The keys and positions that lead to the tensor in which a path ends."""
    inside = path.partition(" ")[2].rpartition(".value")[0]
    return [int(number) if number else key for number, key in re.findall(r"\[(\d+)\]|\.(\w+)", inside)]


def _at(observation: Any, steps: list[str | int]) -> Any:
    """What the steps lead to; None if this run has shown something else."""
    for step in steps:
        if isinstance(observation, list) and isinstance(step, int):
            observation = observation[step] if step < len(observation) else None
        else:
            observation = observation.get(step) if isinstance(observation, dict) else None
    return observation


def _distance(left: Any, right: Any) -> float:
    """The largest difference of two observations' numbers; 0 if they are of different form."""
    if isinstance(left, dict) and isinstance(right, dict):
        return _distance(list(left.values()), list(right.values()))
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return max((_distance(*pair) for pair in zip(left, right, strict=True)), default=0.0)
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) if math.isfinite(left - right) else 0.0
    return 0.0


def seeds() -> range:
    return range(_RUNS)
