"""Changes of what was there before by one kernel: recorded they are a function of a copy, which is copied back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...._core.tensor import Tensor
from ...._dispatch.elementwise import Elementwise
from ...program.items import Call, Rewritten, Value
from ...program.lower import lowered
from .uses import Uses


def with_single_changes(calls: Sequence[Call], kept: Sequence[Value]) -> list[Call]:
    """The calls, with a single one for each change of a tensor by an elementwise function of itself."""
    uses = Uses(calls, kept)
    found: list[Call] = []
    position = 0
    while position < len(calls):
        parts = _change(calls[position : position + 3], uses)
        found.append(_joined(parts) if parts else calls[position])
        position += len(parts) or 1
    return found


def _change(following: Sequence[Call], uses: Uses) -> list[Call]:
    """The calls at the beginning of a list that are one change; none: there is no such."""
    parts = list(following)
    source: Any
    copied: Any
    if parts[0].op.name == "clone" and type(parts[0].results) is Value and uses.count(parts[0].results) == 1:
        source, copied = parts[0].args[0], parts[0].results
    else:
        parts = parts[:2]
        source = copied = parts[0].args[0] if parts[0].args else None
    if len(parts) < 2 or type(source) is not Value:
        return []
    computed, stored = parts[-2:]
    if not isinstance(computed.op, Elementwise) or not _is_of_itself(computed, copied):
        return []
    if stored.op.name != "copy_" or stored.args[:2] != (source, computed.results) or uses.count(computed.results) != 1:
        return []
    target, made = stored.examples[0]._array, computed.made._array
    alike = target.shape == made.shape and target.dtype == made.dtype == computed.examples[0]._array.dtype
    return parts if alike else []


def _is_of_itself(call: Call, value: Value) -> bool:
    """Whether a call computes with the elements of one value, and at most with a number beside it."""
    return call.args[0] == value and not any(isinstance(each, Tensor) for each in call.examples[1:])


def _joined(parts: list[Call]) -> Call:
    computed, stored = parts[-2:]
    large = computed.op.table[computed.examples[0]._kind][2] if isinstance(computed.op, Elementwise) else None
    runs = [lowered(each) for each in parts]
    numbers = computed.args[1:]
    return Rewritten(
        computed.op,
        (stored.args[0],),
        stored.results,
        (stored.examples[0],),
        stored.made,
        run=_changing(large, runs, parts[0].args[1:], numbers, stored.args[2:]),
    )


def _changing(
    large: Any,
    runs: list[Callable[..., Any]],
    cloning: tuple[Any, ...],
    numbers: tuple[Any, ...],
    storing: tuple[Any, ...],
) -> Callable[[Any], None]:
    """What changes an array at once, or by parts where no kernel does."""

    def change(array: Any) -> None:
        if large is not None and large.into(array, array, *numbers):
            return
        source = runs[0](array, *cloning) if len(runs) == 3 else array
        runs[-1](array, runs[-2](source, *numbers), *storing)

    return change
