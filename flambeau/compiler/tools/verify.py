"""Running a program beside the call that it stands for, and comparing everything on the way.

A call is recorded with copies of all that its ops were given and made (`full_recorder.py`). Its program is written as
any other, but on arrays of its own, with a look at them after each kernel. What differs first is narrowed down to the
fewest ops that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..._core.process.caller import describe_place
from .._compiled import Compiled, Refused
from .._errors import WrongProgram
from ..capture.attempt import Attempt
from ..capture.breaks.split import Definition
from ..capture.watch import Watch
from ..emit.source import Source
from ..emit.stages import Stage, stages_of
from ..emit.write import Recording, places_of, write, write_checks
from ..plan.segment import Segment
from ..program.items import Call, Item, Outside, Read, Value, values_in
from ..program.reads import differs
from .difference import Difference, same
from .full_recorder import Array, FullRecorder, copies, drawing_again, outcome_of


class Stepped(Source):
    """Source that shows what is there after each kernel; `trusting`: schedules are run, whatever they do."""

    def __init__(self, look: Callable[..., None], outside: Callable[..., None], trusting: bool = False) -> None:
        super().__init__()
        self._trusting = trusting
        self.constants.update(look=look, outside=outside)
        self._inside = False

    def _segment(self, segment: Segment) -> None:
        self._inside = True
        super()._segment(segment)
        self._inside = False
        made = [number for output in segment.outputs for number, _ in output.windows]
        self._show(segment, [*made, *_numbers(segment.windows)])

    def _runner(self, segment: Segment) -> str:
        return self.constant(segment.runner.run) if self._trusting else super()._runner(segment)

    def _item(self, item: Item) -> None:
        if isinstance(item, Outside):
            self.lines.append(f"outside({self.constant(item)})")
        elif isinstance(item, Call):
            super()._item(item)
            if not self._inside:
                self._show(item, _numbers([item]))

    def _show(self, part: Item | Segment, numbers: Iterable[int]) -> None:
        shown = "".join([f"{each}: v{each}, " for each in dict.fromkeys(numbers)])
        self.lines.append(f"look({self.constant(part)}, {{{shown}}})")


def _numbers(calls: Iterable[Call]) -> list[int]:
    return [value.number for each in calls for value in values_in(outcome_of(each))]


def calls_in(part: Item | Segment) -> list[Call]:
    """The ops of a part of a program."""
    return list(part.items) if isinstance(part, Segment) else [part] if isinstance(part, Call) else []


class Steps:
    """The program of a recorded call, written so that it can be looked at on its way."""

    def __init__(self, recording: Recording) -> None:
        program, joint = recording.recorder.program, recording.joint
        self.items = program.items
        self._outside_at = {id(each): at for at, each in enumerate(program.items) if isinstance(each, Outside)}
        forward, wanted = write(Source(recording.state.constants, places_of(recording.state)), [], recording)
        arriving = set() if joint is None else {each.number for each in joint.arriving}
        self.stages: list[Stage] = []
        self._stage_of: dict[int, Stage] = {}
        self._look: Callable[..., None] = _nothing
        self._outside: Callable[..., None] = _nothing
        self._forward = self._written(forward, wanted, [each for each in program.inputs if each not in arriving])
        self._backward: Callable[..., Any] | None = None
        if joint is not None and not joint.freed:
            _, backward, saved = joint.parts(program, for_all_sizes=False)
            self._saved = [each.number for each in saved]
            self._arriving = [each.number for each in joint.arriving]
            results = [each for each in joint.results if each is not None]
            self._backward = self._written(backward, results, [*self._arriving, *self._saved], True)

    def _written(
        self, items: Sequence[Item], wanted: Sequence[Value], inputs: Sequence[int], backward: bool = False
    ) -> Callable[..., Any]:
        source = Stepped(lambda *shown: self._look(*shown), lambda item: self._outside(item))
        source.items(items, wanted)
        stages = stages_of(source.parts, backward)
        self.stages += stages
        self._stage_of.update(zip(map(id, source.parts), stages, strict=True))
        made: Callable[..., Any] = source.function("stepped", ", ".join([f"v{each}" for each in dict.fromkeys(inputs)]))
        return made

    def difference(self, recording: Recording) -> Difference | None:
        """Where another recording, of the same ops, differs from what the program makes of its inputs."""
        recorder = recording.recorder
        assert isinstance(recorder, FullRecorder)
        seen = Seen(recorder, self._outside_at)
        inputs = _inputs(recorder)
        try:
            self._run(recording, inputs, seen.look, seen.outside_on(inputs))
        except _Found as found:
            return seen.narrowed(found.calls)
        return None

    def measure(self, recording: Recording) -> None:
        """Let every stage know how long it takes, at best."""
        recorder = recording.recorder
        assert isinstance(recorder, FullRecorder)
        best: dict[int, float] = {}
        last = 0.0

        def look(part: Item | Segment, arrays: dict[int, Array]) -> None:
            took = perf_counter() - last
            best[id(part)] = min(took, best.get(id(part), took))
            begin()

        def begin(item: Outside | None = None) -> None:
            nonlocal last
            last = perf_counter()

        for _ in range(_RUNS):
            self._run(recording, _inputs(recorder), look, begin)
        for key, took in best.items():
            self._stage_of[key].seconds = took

    def _run(self, recording: Recording, inputs: dict[int, Array], look: Any, outside: Any) -> None:
        recorder = recording.recorder
        assert isinstance(recorder, FullRecorder)
        self._look, self._outside = look, outside
        try:
            with drawing_again(recorder.drawn.values()):
                given = _named(inputs)
                outside(None)
                self._forward(**given)
                if self._backward is not None:
                    given = _named({**self._kept_for_backward(recorder, inputs), **self._ones(recording)})
                    outside(None)
                    self._backward(**given)
        finally:
            self._look = self._outside = _nothing

    def _kept_for_backward(self, recorder: FullRecorder, inputs: dict[int, Array]) -> dict[int, Array]:
        known = {number: array for each in recorder.outcome.values() for number, array in each.items()}
        return {each: inputs[each] if each in inputs else known[each] for each in self._saved}

    def _ones(self, recording: Recording) -> dict[int, Array]:
        """The gradients that arrive, as they did when the call was recorded."""
        assert recording.joint is not None
        arriving = zip(self._arriving, recording.joint.outputs, strict=True)
        return {number: np.ones(each._array.shape, each._array.dtype) for number, each in arriving}


_RUNS = 10


def _inputs(recorder: FullRecorder) -> dict[int, Array]:
    """What was there before the call, by the numbers of values: arrays that a program may change."""
    fresh = copies(recorder.arrays_before.values())
    return {
        number: fresh[id(recorder.arrays_before[id(tensor._array)])]
        for number, tensor in recorder.program.inputs.items()
        if id(tensor._array) in recorder.arrays_before
    }


def _named(arrays: dict[int, Array]) -> dict[str, Array]:
    return {f"v{number}": array for number, array in arrays.items()}


def _nothing(*args: Any) -> None:
    """What is called before anybody looks."""


class Seen:
    """What a recorder has seen of a call, by the items of a program that was recorded before."""

    def __init__(self, recorder: FullRecorder, outside_at: dict[int, int]) -> None:
        self._recorder = recorder
        self._outside_at = outside_at

    def _of(self, call: Call) -> Call:
        """The call that the recorder has seen."""
        found = self._recorder.program.items[call.position]
        assert isinstance(found, Call)
        return found

    def outcome(self, call: Call) -> dict[int, Array]:
        """What a call made and changed."""
        return self._recorder.outcome.get(id(self._of(call)), {})

    def outside_on(self, inputs: dict[int, Array]) -> Callable[[Outside | None], None]:
        """What stands for Python outside: it leaves in arrays what that has left there; None: the program begins."""
        by_array = {id(tensor._array): number for number, tensor in self._recorder.program.inputs.items()}

        def put(item: Outside | None) -> None:
            if item is None:
                return
            now = self._recorder.program.items[self._outside_at[id(item)]]
            for key, content in self._recorder.after_outside[id(now)].items():
                number = by_array.get(key)
                if number is not None and number in inputs:
                    inputs[number][...] = content

        return put

    def look(self, part: Item | Segment, arrays: dict[int, Array]) -> None:
        """Compare what is there after a part of the program."""
        calls = calls_in(part)
        expected: dict[int, Array] = {}
        for each in calls:
            expected.update(self.outcome(each))
        if any(number in expected and not same(expected[number], array) for number, array in arrays.items()):
            raise _Found(calls)

    def narrowed(self, calls: list[Call]) -> Difference:
        """The fewest of neighbouring ops that differ when they are compiled by themselves."""
        if self.shown(calls) is None:  # only in its place, with no more wanted of it than there
            number, expected = next(iter(self.outcome(calls[-1]).items()))
            return Difference(calls, number, expected, None, self.given_to(calls), self.shown)
        end = _least(len(calls), lambda count: self.shown(calls[:count]) is not None)
        length = _least(end, lambda count: self.shown(calls[end - count : end]) is not None)
        found = self.shown(calls[end - length : end])
        assert found is not None
        return found

    def given_to(self, calls: Sequence[Call]) -> dict[int, Array]:
        """What ops need that none of them makes."""
        made: set[int] = set()
        given: dict[int, Array] = {}
        for each in calls:
            seen = self._of(each)
            for value, was in zip(values_in(each.args), values_in(seen.args), strict=True):
                if value.number not in made:
                    given.setdefault(value.number, self._recorder.given[id(seen)][was.number])
            made.update([value.number for value in values_in(each.results)])
        return given

    def shown(self, calls: Sequence[Call]) -> Difference | None:
        """What differs if some ops alone are compiled, every value of theirs wanted: in a first call, or later."""
        return self._shown(calls, trusting=False) or self._shown(calls, trusting=True)

    def _shown(self, calls: Sequence[Call], trusting: bool) -> Difference | None:
        given = self.given_to(calls)
        found: list[Difference] = []

        def look(part: Item | Segment, arrays: dict[int, Array]) -> None:
            for call in calls_in(part):
                for number, expected in self.outcome(call).items():
                    if not found and number in arrays and not same(expected, arrays[number]):
                        found.append(
                            Difference(list(calls), number, expected, np.array(arrays[number]), given, self.shown)
                        )

        source = Stepped(look, _nothing, trusting)
        source.items(calls, [value for each in calls for value in values_in(each.results)])
        own = {number: array.copy(order="K") for number, array in given.items()}
        with drawing_again([self._recorder.drawn[id(self._of(each))] for each in calls]):
            source.function("stepped", ", ".join(_named(given)))(**_named(own))
        return found[0] if found else None


class _Found(Exception):
    """A part of the program has computed something else."""

    def __init__(self, calls: list[Call]) -> None:
        self.calls = calls


def _least(most: int, holds: Callable[[int], bool]) -> int:
    """The least number from 1 on for which something holds, if it holds for all larger ones."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


_STALE = "the checks of a program hold for a call that does something else"


class Verified(Compiled):
    """A function whose programs run beside its calls, never in their place."""

    _replays = False

    _recorder = FullRecorder
    _backend = "verify"
    _guards = False
    _is_timed = False
    verified = 0
    ops = 0

    def _part(self, refused: Refused, function: Callable[..., Any], definition: Definition | None) -> Compiled:
        return Verified(function, definition=definition, dynamic=False)

    @property
    def all_ops(self) -> int:
        """How many ops have been compared in them."""
        inside = [] if self.parts is None else self.parts.compiled
        total: int = sum([each.all_ops for each in inside], self.ops)
        return total

    def _program(self, recording: Recording) -> Callable[..., Any]:
        steps, watch = Steps(recording), recording.watch
        source = Source(recording.state.constants)
        write_checks(source, recording.state.lines, recording)
        source.lines.append("return verified(args, kwargs)")

        def verified(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            try:
                now = self._recorded(Attempt(self.function, args, kwargs), watch, Watch())
            except Refused as refused:
                raise WrongProgram(f"{_STALE}: {refused.reason}") from None
            if _reads_otherwise(recording, now):
                return now.result  # the program would have left there
            if (other := _other_ops(recording, now)) is not None:
                raise WrongProgram(f"{_STALE}: {other}")
            difference = steps.difference(now)
            if difference is not None:
                raise WrongProgram(str(difference), difference)
            self.verified += 1
            self.ops += sum([isinstance(each, Call) for each in now.recorder.program.items])
            return now.result

        source.constants["verified"] = verified
        made: Callable[..., Any] = source.function("call", "args, kwargs")
        vars(made).update(places=set(), steps=steps, recording=recording)
        return made

    @property
    def all_verified(self) -> int:
        """How many calls, of it and of its parts, have been found equal to what a program did."""
        inside = [] if self.parts is None else self.parts.compiled
        total: int = sum([each.all_verified for each in inside], self.verified)
        return total


def _reads_otherwise(recording: Recording, now: Recording) -> bool:
    """Whether Python has found other elements in a call than in the one that was recorded before it."""
    before, after = (
        [each.call.made for each in one.recorder.program.items if isinstance(each, Read)] for one in (recording, now)
    )
    return any(map(differs, after, before))


def _other_ops(recording: Recording, now: Recording) -> str | None:
    """What a call did otherwise than the one that was recorded before it; None: nothing."""
    before, after = recording.recorder.program.items, now.recorder.program.items
    for one, other in zip(before, after, strict=False):
        if type(one) is not type(other) or (
            isinstance(one, Call) and isinstance(other, Call) and _is_other(one, other)
        ):
            return f"{_told(one)} is now {_told(other)}"
    return None if len(before) == len(after) else f"{len(before)} steps are now {len(after)}"


def _is_other(one: Call, other: Call) -> bool:
    return one.op is not other.op or differs(_plain(one.args), _plain(other.args))


def _plain(value: Any) -> Any:
    """Arguments in terms that can be compared."""
    if type(value) in (list, tuple):
        return type(value)([_plain(each) for each in value])
    if type(value) is slice:
        return repr(value)
    return value if isinstance(value, (bool, int, float, complex, str, np.ndarray, Value)) else type(value)


def _told(item: Item) -> str:
    if not isinstance(item, Call):
        return type(item).__name__.lower()
    given = ", ".join([f"v{each.number}" if type(each) is Value else repr(each) for each in item.args])
    return f"{item.op.name}({given}) at {describe_place(item.place)}"


_MOST_CALLS = 16
"""Parts of a function, and parts of these, are watched for some calls each."""


class Verification(str):
    """What comes out of `verify`: a text; `equal` says whether nothing differs."""

    __slots__ = ("difference", "equal")

    equal: bool
    difference: Difference | None
    """Where the program and the call part, if both do the same ops."""


def verify(function: Any, *args: Any, **kwargs: Any) -> Verification:
    """Compile a function, and compare everything that its program computes with what a call of it computes.

    The function is called several times, with these arguments: as compiling needs it, and once more for the comparison.
    What is different is named: the first op, its line, and the ops that share a kernel with it.

    >>> flambeau.compiler.verify(lambda x: (x * 2).relu() + 1, flambeau.randn(3))
    'equal: 1 call, 3 ops'

    Args:
        function: the function.
        *args: its arguments.
        **kwargs: its keyword arguments.

    Returns:
        what was compared, and what differs.
    """
    verified = Verified(getattr(function, "_torchdynamo_orig_callable", function), dynamic=False)
    difference = None
    try:
        for _ in range(_MOST_CALLS):
            verified(*args, **kwargs)
            if verified.verified:
                break
        count = verified.all_verified
        ops = verified.all_ops
        text = (
            f"equal: {count} call{'s' * (count != 1)}, {ops} op{'s' * (ops != 1)}" if count else "nothing is compiled"
        )
        equal, whys = bool(count), "".join([f"\n- {each}" for each in dict.fromkeys(verified.all_reasons)])
    except WrongProgram as error:
        text, equal, whys, difference = str(error), False, "", error.difference
    made = Verification(text + whys)
    made.equal, made.difference = equal, difference
    return made


def measure(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let the stages of programs know how long they take, by calls with these arguments, which are real ones."""
    beside = Verified(compiled.function, dynamic=False)
    for _ in range(_MOST_CALLS):
        beside(*args, **kwargs)
        if beside.verified:
            break
    found: dict[str, list[Stage]] = {}
    for program in beside.all_programs:
        steps = vars(program)["steps"]
        steps.measure(vars(program)["recording"])
        found[_signature(steps.stages)] = steps.stages
    for program in compiled.all_programs:
        stages = vars(program)["stages"]
        for stage, measured in zip(stages, found.get(_signature(stages), ()), strict=False):
            stage.seconds = measured.seconds


def _signature(stages: Sequence[Stage]) -> str:
    return repr([[(step.name, step.shapes) for step in each.steps] for each in stages])
