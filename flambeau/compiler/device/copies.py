"""Copies that nobody needs: gradients are handed on as they are where nothing else has their memory.

While a call is recorded everything that it makes is held, so that the engine copies each gradient that becomes
somebody's own. In the program most of them belong to nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._program import Call, Rewritten, Value
from .uses import Uses


def without_copies(calls: Sequence[Call], inputs: Iterable[Value], kept: Sequence[Value]) -> list[Call]:
    """The calls, with gradients handed on where they were copied."""
    uses = Uses(calls, kept)
    given = {uses.memory[each] for each in inputs}
    found: list[Call] = []
    for position, call in enumerate(calls):
        if call.op.name == "copied_like" and _is_free(call, position, uses, given):
            found.append(Rewritten(call.op, call.args[:1], call.results, call.examples[:1], call.made, run=_itself))
        else:
            found.append(call)
    return found


def _is_free(call: Call, position: int, uses: Uses, given: set[int]) -> bool:
    """Whether what is copied is like the copy, and nobody looks at its memory from here on."""
    value = call.args[0]
    if type(value) is not Value or uses.memory[value] in given or uses.last_of_memory(value) > position:
        return False
    old, new = call.examples[0]._array, call.made._array
    return bool(
        old.strides == new.strides and old.dtype == new.dtype and uses.memory[value] != uses.memory[call.results]
    )


def _itself(array: Any) -> Any:
    return array
