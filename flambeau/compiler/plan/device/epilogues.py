"""Elementwise calls behind a normalisation as part of its last kernel: what is normalised is not written and read.

They are done when the normalisation is, so that what they read besides has to be there by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...._core.tensor import Tensor
from ...program.items import Call, Rewritten, Value, values_in
from .group import Group
from .steps import step_of
from .uses import Uses

_FAR = 6
"""So many calls behind a normalisation are looked at."""


def with_epilogues(calls: Sequence[Call], kept: Sequence[Value], family: Any, pointwise: Any) -> list[Call]:
    """The calls, with kernels of `family`, the backend's normalisations; `pointwise` has elementwise programs."""
    uses = Uses(calls, kept)
    maker = {value: at for at, call in enumerate(calls) for value in values_in(call.results)}
    given = {memory for value, memory in uses.memory.items() if value not in maker}
    found: list[Call | None] = list(calls)
    for position, call in enumerate(calls):
        if type(call) is not Call or call.op.name != "native_batch_norm" or found[position] is None:
            continue
        behind = dict(enumerate(calls[position + 1 : position + 1 + _FAR], position + 1))
        later = {value for value, at in maker.items() if at >= position}
        group = Group({call.results[0]: call.made[0]})
        taken = _taken(group, behind, later, _Changes(uses, given), pointwise)
        joined = _joined(call, group, uses, family) if taken else None
        if joined is not None:
            found[position] = joined
            for at in taken:
                found[at] = None
    return [each for each in found if each is not None]


class _Changes:
    """What has changed since the normalisation: what is done with that may not read it. `given` is the memory that was
    there before; any two pieces of it may be one the next time."""

    def __init__(self, uses: Uses, given: set[int]) -> None:
        self._memory = uses.memory
        self._given = given
        self._written: set[int] = set()

    def note(self, call: Call) -> None:
        """Take note of what a call changes."""
        for at in call.op.writes:
            self._written |= {self._memory[each] for each in values_in(call.args[at])}
        if not self._written.isdisjoint(self._given):
            self._written |= self._given

    def are_seen(self, values: Iterable[Value]) -> bool:
        """Whether one of the values has changed."""
        return any(self._memory[each] in self._written for each in values)


def _taken(group: Group, behind: dict[int, Call], later: set[Value], changes: _Changes, pointwise: Any) -> list[int]:
    """Let a group have what calls compute with its results, and with nothing that is made or changed `later`."""
    taken = []
    own = set(group.loaded)
    for at, call in behind.items():
        needs = set(values_in(call.args))
        if type(call) is not Call:
            break
        if own.isdisjoint(needs) and not group.makes(needs):
            changes.note(call)
            continue
        others = needs - own - group.computed.keys()
        step = None if changes.are_seen(others) or not others.isdisjoint(later) else step_of(call, pointwise)
        if step is None or not group.takes(step):
            break
        taken.append(at)
    return taken


def _joined(call: Call, group: Group, uses: Uses, family: Any) -> Call | None:
    """The normalisation with the group behind it; None: there is no such kernel."""
    normalised = call.results[0]
    wanted = group.used_outside(uses, [normalised, *group.computed])
    others = [each for each in group.loaded if each != normalised]
    made = [group.example(each) for each in wanted]
    alike = {(each._array.dtype, each._array.strides) for each in (*made, *map(group.example, others), call.made[0])}
    if not wanted or len(alike) != 1:
        return None
    given = [each._array if isinstance(each, Tensor) else each for each in call.examples]
    run = family.followed_by(group.program(wanted), len(others), given)
    if run is None:
        return None
    return Rewritten(
        call.op, (*call.args, *others), [*wanted, *call.results[1:]], (*call.examples, *map(group.example, others)),
        [*made, *call.made[1:]], call.place, run=run, instead_of=[call, *group.calls],
    )  # fmt: skip
