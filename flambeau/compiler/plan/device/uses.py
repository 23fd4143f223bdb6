"""Who uses which value of a device segment, and which values share memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ...._core.tensor import Tensor
from ...program.items import Call, Value, values_in


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


class Uses:
    """What is used how often in a list of calls; `kept` is used afterwards."""

    def __init__(self, calls: Sequence[Call], kept: Iterable[Value]) -> None:
        self.memory: dict[Value, int] = {}
        """What is the same for values that share memory."""
        self._count: Counter[Value] = Counter(kept)
        for call in calls:
            for value, example in (*pairs(call.args, call.examples), *pairs([call.results], [call.made])):
                self.memory[value] = memory_of(example)
            self._count.update(values_in(call.args))

    def count(self, value: Value) -> int:
        """How often a value is used."""
        return self._count[value]
