"""Elementwise calls behind a normalisation as part of its last kernel: what is normalised is not written and read.

They are done when the normalisation is, so that what they read besides has to be there by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from .._program import Call, Rewritten, Value, values_in
from .group import Group
from .steps import step_of
from .uses import Uses, memory_of, pairs

_FAR = 6
"""So many calls behind a normalisation are looked at."""


def with_epilogues(calls: Sequence[Call], kept: Sequence[Value], family: Any, pointwise: Any) -> list[Call]:
    """The calls, with kernels of `family`, the backend's normalisations; `pointwise` has elementwise programs."""
    uses = Uses(calls, kept)
    maker = {value: at for at, call in enumerate(calls) for value in values_in(call.results)}
    found: list[Call | None] = list(calls)
    for position, call in enumerate(calls):
        if type(call) is not Call or call.op.name != "native_batch_norm" or found[position] is None:
            continue
        behind = dict(enumerate(calls[position + 1 : position + 1 + _FAR], position + 1))
        group = Group({call.results[0]: call.made[0]})
        taken = _taken(group, behind, {value for value, at in maker.items() if at >= position}, pointwise)
        joined = _joined(call, group, uses, family) if taken else None
        if joined is not None:
            found[position] = joined
            for at in taken:
                found[at] = None
    return [each for each in found if each is not None]


def _taken(group: Group, behind: dict[int, Call], later: set[Value], pointwise: Any) -> list[int]:
    """Let a group have what calls compute with its results, and with nothing that is made `later`."""
    taken = []
    own = set(group.loaded)
    for at, call in behind.items():
        needs = set(values_in(call.args))
        if own.isdisjoint(needs) and not group.makes(needs):
            if _changes_what_is_read(call, group):
                break
            continue
        is_late = any(each in later and each not in own and each not in group.computed for each in needs)
        step = None if is_late else step_of(call, pointwise)
        if step is None or not group.takes(step):
            break
        taken.append(at)
    return taken


def _changes_what_is_read(call: Call, group: Group) -> bool:
    """Whether a call that stays behind the group might change what the group has to read before."""
    if type(call) is not Call:
        return True
    written = {memory_of(each) for at in call.op.writes for _, each in pairs([call.args[at]], [call.examples[at]])}
    return bool(written) and any(memory_of(each) in written for each in group.loaded.values())


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
