"""Calls with new sizes, for which a program for all sizes has no row yet.

To record a call takes as long as some 20 plain ones: Python state is walked over, ops are written down, improved and
compared with those of the program. Where all guards but those of sizes hold, a call with new sizes needs none of this.
It runs as usual, while a `Follower` compares each op with that of the recorded call. If the same lines of Python ran,
and the same ops on the same values, numbers are all that differs, and they are the new row.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._core.process.collector import collector_paused
from ..._dispatch.arguments.autocast import own_casts
from ..capture.attempt import Attempt
from ..capture.containers import Containers
from ..capture.guards import MISS, State
from ..capture.layout import mark
from ..capture.mutations import Change, undone
from ..capture.new_objects import Made
from ..capture.recorder import Recorder
from ..capture.settings import settings
from ..capture.watch import Uncompilable, Watch
from ..passes.heads import steps_left_out
from ..passes.memory import same_value
from ..program.items import Call, Item
from .backward import Joint, joint_of
from .follower import Follower, Steps, numbers_in
from .outline import Outline
from .results import Answered, answer_of
from .sizes import SizedRegion, SizedSource, same, sized_checks
from .source import Source
from .text import checks_left


@dataclass
class Followed:
    """A call that was compared with a recorded one, as what writes its results wants it."""

    state: State
    recorder: Follower
    result: Any
    changes: Sequence[Change]


class Binding:
    """Finds what another call has at the places of the recorded one, if it passes the same checks but for sizes."""

    def __init__(self, state: State) -> None:
        checks, _, _ = sized_checks(state)
        self._tensors = [held for _, held in state.tensors.values()]
        self._containers = [replace(each, value=None) for each in state._containers._found.values()]
        self._seen = list(state._seen.values())
        wanted = [each.removesuffix("._array") for each in self._tensors]
        wanted += [*[each.place for each in self._containers], *self._seen]
        self._names = sorted({each for each in wanted if each not in state.constants})
        source = Source(state.constants)
        lines = checks_left(checks, () if state.facts.table is None else state.facts.lines, self._names)
        source.lines, source.checks = [*lines, f"return ({''.join([f'{each}, ' for each in self._names])})"], len(lines)
        self._function = source.function("places", "args, kwargs")
        self._state = copy.copy(state)
        self._state.tensors, self._state._seen, self._state._marks = {}, {}, []
        self._state._containers = Containers()

    def holds(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call passes the checks but for sizes."""
        return self._found(args, kwargs) is not MISS

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        facts = self._state.facts
        return self._function(args, kwargs) if facts.table is None or facts.all_hold() else MISS

    def state_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> State | None:
        """The state of another call; None: it does not pass the checks, or two tensors in it are one."""
        found = self._found(args, kwargs)
        if found is MISS:
            return None
        made = copy.copy(self._state)
        objects = {**made.constants, **dict(zip(self._names, found, strict=True))}
        tensors = [(objects[held.removesuffix("._array")], held) for held in self._tensors]
        made.tensors = {id(each._array): (each, held) for each, held in tensors}
        made._seen = {id(objects[place]): place for place in self._seen}
        made._marks = [(each, mark(each)) for each, _ in tensors]
        made._containers = Containers()
        for each in self._containers:
            value = objects[each.place]
            made._containers._found[id(value)] = each.of(value)
        is_apart = len(made.tensors) == len(tensors) and len(made._seen) == len(self._seen)
        return made if is_apart and len(made._containers._found) == len(self._containers) else None


class Pattern:
    """A recorded call, as calls with other sizes are compared with it."""

    def __init__(self, recording: Any, source: SizedSource, outline: Outline, written: Sequence[Any]) -> None:
        state, recorder, joint = recording.state, recording.recorder, recording.joint
        assert outline.answered is not None
        self._binding, self._watch, self._known = Binding(state), state._watch, recording.known
        places = {key: held for key, (_, held) in state.tensors.items()}
        boundary = len(recorder.program.items) if joint is None else joint.boundary
        self._steps = Steps(recorder, places, () if joint is None else joint.arriving, boundary)
        self._steps.repeating = steps_left_out(recorder.program.items, outline.items)
        self._written: Written = written[0]
        self._behind: Written | None = written[1] if len(written) > 1 else None
        self._repeats = _repeats(recorder.program.items, {at for each in written for at in each.positions})
        self._constants, self._answered = dict(source.constants), outline.answered.lines
        self.moved: set[int] = set()
        """The ops of the last call that were given other numbers than those of the recorded one, or other shapes."""
        self._region: Any = None
        self._joint: tuple[Any, ...] | None = None
        if joint is not None:
            self._region, self._joint = outline.regions[0], _facts_of(joint, recorder, outline.answered)

    def moved_in(self, items: Sequence[Item]) -> set[int] | None:
        """The ops of another recorded call that were given other numbers, or other shapes; None: it has other ops."""
        return self._steps.moved_in(items)

    def row(self, attempt: Attempt) -> list[Any] | None:
        """Make a call, and compare it with the recorded one: its numbers; None: it is not the same but for them."""
        made, call = Made(), (attempt.args, attempt.kwargs)
        with collector_paused():
            state = self._binding.state_of(*call)
        if state is None:
            attempt.run()
            return None
        contents, now = state.contents(), Watch()
        follower = Follower(self._steps, state, now, made)
        with now, follower, own_casts():
            result = attempt.run()
            if (fault := now.fault or follower.fault) is not None:
                raise fault
            if follower.is_refused:
                return None
            with now.looking_away():
                changes = contents.changes()
                left = [result, *[each.after for each in changes]]
                made.end(left)
            joint = joint_of(state, follower, left, now)
        if follower.is_refused or now.fault is not None or not follower.is_whole or not self._ran_as_before(now, state):
            return None
        with undone([each for each in changes if each.is_given]):
            if not self._binding.holds(*call):
                return None
        with collector_paused(), undone(changes):
            if state.has_changed_tensors() or not self._binding.holds(*call) or settings() != self._known:
                return None
        self.moved = follower.moved
        return self._numbers(Followed(state, follower, result, changes), joint)

    def _ran_as_before(self, now: Watch, state: State) -> bool:
        return not now.reads_more_than(self._watch) and all(map(state.has_seen, now.variables))

    def _numbers(self, followed: Followed, joint: Joint | None) -> list[Any] | None:
        """The numbers of a call that ran the same ops, if it returns and changes the same."""
        state, follower = followed.state, followed.recorder
        source = SizedSource(state.constants, {id(each): held[:-7] for each, held in state.tensors.values()})
        source.constants.update(settings=settings, kept=state.kept)
        source.constant(self._known)
        try:
            answered = answer_of(source, followed)
        except Uncompilable:
            return None
        if answered.lines != self._answered:
            return None
        for name, value in source.constants.items():
            if name.startswith("k") and name != "kept" and not same(value, self._constants.get(name)):
                return None
        if not all(same_value(follower.numbers[at], follower.numbers[before]) for at, before in self._repeats):
            return None
        numbers = source.numbers
        if joint is not None:
            if self._behind is None or _facts_of(joint, follower, answered) != self._joint:
                return None
            region: Any = copy.copy(self._region)
            region.outputs = tuple([(each._array.shape, each._kind) for each in joint.outputs])
            region.backward = functools.partial(region.function, tuple(self._behind.numbers(follower)))
            numbers.append(region)
        if len(numbers) != self._written.begin:
            return None
        return [*numbers, *self._written.numbers(follower)]


def _repeats(items: Sequence[Call], written: set[int]) -> list[tuple[int, int]]:
    """Ops that were not written, and those before them which had the same numbers, and may be there for both."""
    before: dict[Any, list[int]] = {}
    found: list[tuple[int, int]] = []
    for at, each in enumerate(items):
        numbers = numbers_in(each.args)
        if not numbers:
            continue
        like = before.setdefault(each.op, [])
        if at not in written:
            found += [(at, other) for other in like if same_value(numbers_in(items[other].args), numbers)]
        like.append(at)
    return found


def _facts_of(joint: Joint, recorder: Any, answered: Answered) -> tuple[Any, ...]:
    """What of a backward pass has to be the same."""
    values = [recorder.value_of(each) for each in (*joint.outputs, *joint.inputs)]
    names = [answered.answer.name_of(each) for each in joint.outputs]
    return joint.freed, values, names, joint.results, joint.behind, joint.boundary


@dataclass
class Written:
    """Which of the recorded items a program was written of."""

    begin: int
    """How many numbers were written before them."""
    positions: list[int]

    def numbers(self, follower: Follower) -> list[Any]:
        """The numbers of these items in another call."""
        return [number for at in self.positions for number in follower.numbers[at]]


def written_in(source: SizedSource, items: Sequence[Item]) -> Written | None:
    """Which items a source was written of; None: some of its numbers are not those that these were given."""
    begin = end = source.spans[0][1] if source.spans else len(source.numbers)
    for position, first, last in source.spans:
        call = items[position]
        given = numbers_in(call.args) if isinstance(call, Call) else []
        written = source.numbers[first:last]
        if first != end or len(given) != len(written) or any(map(operator.is_not, given, written)):
            return None
        end = last
    return Written(begin, [position for position, _, _ in source.spans]) if end == len(source.numbers) else None


def pattern_of(recording: Any, source: SizedSource, outline: Outline) -> Pattern | None:
    """What calls with other sizes are compared with; None: such calls have to be recorded."""
    state, recorder, joint = recording.state, recording.recorder, recording.joint
    items = recorder.program.items
    is_plain = (
        type(recorder) is Recorder
        and recorder.read is None
        and not (state.of_gradients or state.checks_offsets)
        and all(type(each) is Call and not each.op.reads for each in items)
        and all(each._kind.is_cpu for each in recorder.tensors.values())
    )
    if not is_plain or (joint is not None and (joint.freed or len(joint.outputs) != 1)):
        return None
    behind = [each.source for each in outline.regions if isinstance(each, SizedRegion)]
    written = [written_in(each, items) for each in (source, *behind)]
    if None in written:
        return None
    return Pattern(recording, source, outline, written)
