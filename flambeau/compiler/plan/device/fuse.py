"""Elementwise calls as one kernel: what lies between them stays in registers.

Calls that have nothing to do with a kernel in the making are done before it, so that the two branches of a gate, say,
meet in one kernel although a product lies between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...program.items import Call, Rewritten, Value, values_in
from ...program.pure import is_pure
from .group import Group
from .steps import step_of
from .uses import Uses

_MOST_BETWEEN = 16
"""So many other calls may lie between those of one kernel: what it reads has to stay as long."""


def fused(calls: Sequence[Call], kept: Sequence[Value], family: Any) -> list[Call]:
    """The calls, with kernels of `family`, the backend's, for elementwise ones that follow each other."""
    return _fused(calls, Uses(calls, kept), family)


def _fused(calls: Sequence[Call], uses: Uses, family: Any) -> list[Call]:
    if not calls:
        return []
    found: list[Call] = []
    group = Group()
    between: list[Call] = []
    for call in calls:
        step = step_of(call, family)
        if step is not None and group.takes(step):
            continue
        if group.calls and len(between) < _MOST_BETWEEN and _may_come_before(call, group):
            between.append(call)
            continue
        found += [*_fused(between, uses, family), *_closed(group, uses, family)]
        group, between = Group(), []
        if step is None or not group.takes(step):
            found.append(call)
    return [*found, *_fused(between, uses, family), *_closed(group, uses, family)]


def _may_come_before(call: Call, group: Group) -> bool:
    return type(call) is Call and is_pure(call) and not group.makes(values_in(call.args))


def _closed(group: Group, uses: Uses, family: Any) -> list[Call]:
    """The kernel of a group, or its calls as they are."""
    wanted = group.used_outside(uses, group.computed)
    if len(group.calls) < 2 or not wanted or not group.loaded:
        return group.calls
    given, made = list(group.loaded.values()), [group.example(each) for each in wanted]
    arrays = [each._array for each in given]
    kernel = family.kernel_for(
        group.program(wanted), [each.dtype for each in arrays], [each._array.dtype for each in made]
    )
    if kernel is None or kernel.strides_for(arrays) != [each._array.strides for each in made]:
        return group.calls
    last = group.calls[-1]
    return [
        Rewritten(
            last.op, tuple(group.loaded), wanted, tuple(given), made, last.place, run=kernel.many,
            instead_of=group.calls,
        )
    ]  # fmt: skip
