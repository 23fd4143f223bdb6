"""Which op of two runs is the first whose result differs by more than rounding explains.

The walk goes over the ops that both runs have. An op is at fault if it made different things out of the same, or read
what only one run has made. Where ops only round differently, a second pass asks for their results in float64.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ._alignment import Pairs, aligned
from ._digest import relative_difference
from ._evidence import Evidence, distance
from ._trace import Entry, Trace

EPSILON = {"float64": 2.3e-16, "complex128": 2.3e-16, "float16": 9.8e-4, "bfloat16": 7.9e-3}
_SINGLE = 1.2e-7
ROUNDING = 64
"""Units of the last place that one op may be off by rounding, where nothing better is known."""
JUMP = 16
"""By how much the worse of two results, or a difference, has to be larger to count."""
_MOST_SUSPECTS = 256
_AT_ONCE = 32

Ask = Callable[[list[int]], Mapping[int, Evidence]]
"""Runs a program again and gives evidence about some of its ops."""


@dataclass
class Difference:
    """The first op at which two runs part."""

    kind: str
    """One of "data", "arguments", "program", "dtype", "random", "result"."""
    one: int | None
    """The number of the entry in the first trace; None: only the other has it."""
    other: int | None
    reason: str
    size: float = 0.0
    """About how large the difference is, relative to the result."""
    errors: tuple[float, float] | None = None
    """The errors of both results against float64, relative to its size."""
    evidence: tuple[Evidence | None, Evidence | None] = (None, None)


@dataclass
class Verdict:
    """What the walk over two traces found."""

    pairs: Pairs
    first: Difference | None = None
    rounded: list[int] = field(default_factory=list)
    """Positions in `pairs` of ops that differ, by no more than rounding explains."""
    sizes: list[float] = field(default_factory=list)
    """Of each pair: about how large the difference of the results is, relative to them."""
    notes: list[str] = field(default_factory=list)


def epsilon_of(kind: str) -> float:
    """The distance of 1 to the next number of a dtype, given with a shape behind it."""
    return EPSILON.get(kind.partition("[")[0], _SINGLE)


def _key(trace: Trace, entry: Entry) -> tuple[Any, ...]:
    shapes = tuple(kind[kind.find("[") :] for kind in trace.kinds_of(entry.outputs))
    return entry.name, entry.module, entry.phase, shapes


def judge(
    one: Trace, other: Trace, *, marks_only: bool = False, ask_one: Ask | None = None, ask_other: Ask | None = None
) -> Verdict:
    """Compare two traces. `marks_only` compares the results of modules, gradients and parameters, and not ops."""
    first, second = (
        [number for number, each in enumerate(trace.entries) if each.is_mark or not marks_only]
        for trace in (one, other)
    )
    keys = [_key(one, one.entries[each]) for each in first], [_key(other, other.entries[each]) for each in second]
    pairs = [(first[i], second[j]) for i, j in aligned(*keys)]
    verdict = Verdict(pairs)
    verdict.sizes = [_size(one, other, *pair) for pair in pairs]
    if marks_only:
        verdict.first = _first_jump(one, other, verdict)
    else:
        suspects: list[int] = []
        verdict.first = _walk(one, other, verdict, suspects)
        _try_suspects(one, other, verdict, suspects, ask_one, ask_other)
        if verdict.first is not None and verdict.first.evidence == (None, None):
            numbers = verdict.first.one, verdict.first.other
            verdict.first.evidence = _one_op(ask_one, numbers[0]), _one_op(ask_other, numbers[1])
    return verdict


def _one_op(ask: Ask | None, number: int | None) -> Evidence | None:
    return None if ask is None or number is None else ask([number]).get(number)


def _outputs(one: Trace, other: Trace, i: int, j: int) -> Iterator[tuple[int, int]]:
    yield from zip(one.entries[i].outputs, other.entries[j].outputs, strict=False)


def _size(one: Trace, other: Trace, i: int, j: int) -> float:
    found = 0.0
    for a, b in _outputs(one, other, i, j):
        if one.digests[a] != other.digests[b]:
            found = max(found, relative_difference(one.summaries[a], other.summaries[b]), 1e-18)
    return found


def _first_jump(one: Trace, other: Trace, verdict: Verdict) -> Difference | None:
    """The first mark at which the difference is far above what came before."""
    largest = 0.0
    for position, (i, j) in enumerate(verdict.pairs):
        size = verdict.sizes[position]
        if not size:
            continue
        kind = one.kinds_of(one.entries[i].outputs)[0]
        usual = max(
            largest, ROUNDING / 2 * max(epsilon_of(kind), epsilon_of(other.kinds_of(other.entries[j].outputs)[0]))
        )
        if size > usual and size > JUMP / 2 * largest:
            return Difference("result", i, j, "its results differ by more than all before it", size)
        largest = max(largest, size)
        verdict.rounded.append(position)
    return None


def _walk(one: Trace, other: Trace, verdict: Verdict, suspects: list[int]) -> Difference | None:
    """The first pair that differs for a reason that needs no tensors; `suspects` gets ops that may be at fault."""
    partner = dict(verdict.pairs)
    sizes_of = {i: size for (i, _), size in zip(verdict.pairs, verdict.sizes, strict=True)}
    for position, (i, j) in enumerate(verdict.pairs):
        a, b = one.entries[i], other.entries[j]
        if a.is_mark:
            if verdict.sizes[position] and a.name == "module" and not verdict.first:
                verdict.rounded.append(position)
            continue
        worst = 0.0
        for x, y in zip(a.inputs, b.inputs, strict=False):
            if x < 0 or y < 0 or one.digests[x] == other.digests[y]:
                continue
            made, made_there = one.producers[x], other.producers[y]
            apart = relative_difference(one.summaries[x], other.summaries[y])
            if made < 0 and made_there < 0:
                if apart > ROUNDING * epsilon_of(one.kinds[x]):
                    return Difference("data", i, j, _data_reason(one, other, a, b, x, y), apart)
            elif partner.get(made, -2) != made_there:
                return _of_programs(one, other, verdict, made, made_there, i, j)
            worst = max(worst, apart, sizes_of.get(made, 0.0))
        size = verdict.sizes[position]
        if one.kinds_of(a.outputs) != other.kinds_of(b.outputs) and len(a.outputs) == len(b.outputs):
            texts = ", ".join(one.kinds_of(a.outputs)), ", ".join(other.kinds_of(b.outputs))
            return Difference("dtype", i, j, f"it makes {texts[0]} in one run and {texts[1]} in the other", size)
        if not size:
            continue
        if a.arguments != b.arguments:
            reason = f"its arguments are ({a.arguments}) in one run and ({b.arguments}) in the other"
            return Difference("arguments", i, j, reason, size)
        if "generator" in a.arguments and not worst:
            return Difference(
                "random", i, j, "it drew other random numbers: another seed, or another order of draws", size
            )
        unit = max(map(epsilon_of, one.kinds_of(a.outputs)), default=_SINGLE)
        if not worst or size > JUMP * max(worst, unit):
            suspects.append(position)
        else:
            verdict.rounded.append(position)
    return None


def _data_reason(one: Trace, other: Trace, a: Entry, b: Entry, x: int, y: int) -> str:
    number = a.inputs.index(x)
    kinds = one.kinds[x], other.kinds[y]
    what = kinds[0] if kinds[0] == kinds[1] else f"{kinds[0]} in one run and {kinds[1]} in the other"
    return f"tensor {number} of its arguments ({what}) comes from outside of the recorded ops, with other elements"


def _of_programs(one: Trace, other: Trace, verdict: Verdict, made: int, made_there: int, i: int, j: int) -> Difference:
    """The first of the ops that only one run has and on which something that both do depends."""
    ours, theirs = [first for first, _ in verdict.pairs], sorted(second for _, second in verdict.pairs)
    alone = _first_ancestor(one, made, set(ours)), _first_ancestor(other, made_there, set(theirs))
    size = _size(one, other, i, j)
    if alone[0] is None and alone[1] is None:  # both have them, in another order
        makers = (_maker(one, made), _maker(other, made_there))
        reason = f"it reads what {makers[0]} made in one run, and what {makers[1]} made in the other"
        return Difference("program", i, j, reason, size)
    reason = f"only one run has it; what it leads to is read by {one.entries[i].name}"
    if alone[0] is not None and alone[1] is not None:
        places = bisect.bisect(ours, alone[0]), bisect.bisect(theirs, alone[1])
        if places[0] == places[1]:
            reason = f"where one run calls it, the other calls {other.entries[alone[1]].name}"
        else:
            alone = (alone[0], None) if places[0] < places[1] else (None, alone[1])
    return Difference("program", *alone, reason, size)


def _maker(trace: Trace, number: int) -> str:
    if number < 0:
        return "nobody"
    entry = trace.entries[number]
    return f"{entry.name} at {entry.line}" if entry.line else entry.name


def _first_ancestor(trace: Trace, number: int, paired: set[int]) -> int | None:
    """The first of the ops that only this run has and that led to what op `number` made; None: both have that op."""
    if number < 0 or number in paired:
        return None
    seen, waiting = {number}, [number]
    while waiting:
        for value in trace.entries[waiting.pop()].inputs:
            maker = trace.producers[value] if value >= 0 else -1
            if maker >= 0 and maker not in paired and maker not in seen:
                seen.add(maker)
                waiting.append(maker)
    return min(seen)


def _try_suspects(
    one: Trace, other: Trace, verdict: Verdict, suspects: list[int], ask_one: Ask | None, ask_other: Ask | None
) -> None:
    """Put the first suspect in place that is at fault, if there is one."""
    suspects = suspects[:_MOST_SUSPECTS]
    for start in range(0, len(suspects), _AT_ONCE):
        part = suspects[start : start + _AT_ONCE]
        ours: Mapping[int, Evidence] = {}
        theirs: Mapping[int, Evidence] = {}
        if ask_one is not None and ask_other is not None:
            ours = ask_one([verdict.pairs[each][0] for each in part])
            theirs = ask_other([verdict.pairs[each][1] for each in part])
        for position in part:
            i, j = verdict.pairs[position]
            found = _tested(one, other, i, j, verdict.sizes[position], ours.get(i), theirs.get(j))
            if found is not None:
                verdict.first = found
                return
            verdict.rounded.append(position)


def _tested(
    one: Trace, other: Trace, i: int, j: int, size: float, ours: Evidence | None, theirs: Evidence | None
) -> Difference | None:
    """Whether an op that differs is at fault; None: its results differ as rounding lets them."""
    kinds = one.kinds_of(one.entries[i].outputs)
    unit = max(map(epsilon_of, kinds), default=_SINGLE)
    if ours is None or theirs is None or ours.exact is None or theirs.exact is None:
        if size <= ROUNDING * unit:
            return None
        return Difference("result", i, j, "it made other results out of the same", size, None, (ours, theirs))
    worst: tuple[float, float] | None = None
    for kind, (error, scale), (error_there, scale_there) in zip(kinds, ours.errors(), theirs.errors(), strict=False):
        mine, others = error / (scale or 1.0), error_there / (scale_there or 1.0)
        larger, smaller = max(mine, others), min(mine, others)
        if larger > ROUNDING * epsilon_of(kind) and larger > JUMP * smaller and larger > max(worst or (0.0,)):
            worst = mine, others
    if worst is None:
        return _of_another_kernel(one, other, i, j, size, ours, theirs)
    side = "the first" if worst[0] > worst[1] else "the second"
    reason = f"out of the same it made other results; against float64, {side} run is wrong"
    return Difference("result", i, j, reason, max(size, *worst), worst, (ours, theirs))


def _of_another_kernel(
    one: Trace, other: Trace, i: int, j: int, size: float, ours: Evidence, theirs: Evidence
) -> Difference | None:
    """Whether the same inputs give another result in float64 too: then it is not the same op in both runs."""
    read, read_there = one.entries[i].inputs, other.entries[j].inputs
    same = [x >= 0 and y >= 0 and one.digests[x] == other.digests[y] for x, y in zip(read, read_there, strict=False)]
    if not all(same) or ours.exact is None or theirs.exact is None:
        return None
    for kind, mine, exact in zip(one.kinds_of(one.entries[i].outputs), ours.exact, theirs.exact, strict=False):
        apart, scale = distance(mine, exact)
        if apart > ROUNDING * epsilon_of(kind) * scale:
            reason = "out of the same it made other results, in float64 too: it does not compute the same"
            return Difference("result", i, j, reason, max(size, apart / (scale or 1.0)), None, (ours, theirs))
    return None
