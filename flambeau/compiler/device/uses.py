"""Who uses which value of a stretch, and which values share memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from .._program import Call, Value, values_in


def memory_of(example: Any) -> int:
    """What is the same for tensors, or bare arrays, that share memory."""
    return id((example._array if isinstance(example, Tensor) else example).memory)


def pairs(args: Any, examples: Any) -> Iterable[tuple[Value, Any]]:
    """The values among arguments or results, each with what it was."""
    for arg, example in zip(args, examples, strict=True):
        if type(arg) is Value:
            yield arg, example
        elif type(arg) in (list, tuple):
            yield from pairs(arg, example)


def made_by(call: Call) -> Iterable[tuple[Value, Any]]:
    """The results of a call, each with what it was."""
    return pairs([call.results], [call.made])


class Uses:
    """What is used where in a list of calls; `kept` is used afterwards."""

    def __init__(self, calls: Sequence[Call], kept: Iterable[Value]) -> None:
        self.memory: dict[Value, int] = {}
        self._last_of_memory: dict[int, int] = {}
        self._count: Counter[Value] = Counter(kept)
        self._maker: dict[Value, int] = {}
        for position, call in enumerate(calls):
            for value, example in (*pairs(call.args, call.examples), *made_by(call)):
                memory = self.memory[value] = memory_of(example)
                self._last_of_memory[memory] = position
            self._count.update(values_in(call.args))
            for value in values_in(call.results):
                self._maker.setdefault(value, position)
        for value in kept:
            if value in self.memory:
                self._last_of_memory[self.memory[value]] = len(calls)

    def count(self, value: Value) -> int:
        """How often a value is used."""
        return self._count[value]

    def made_at(self, value: Value) -> int | None:
        """The position of the call that makes a value; None: it was there before."""
        return self._maker.get(value)

    def last_of_memory(self, value: Value) -> int:
        """The position of the last call that touches the memory of a value."""
        return self._last_of_memory[self.memory[value]]
