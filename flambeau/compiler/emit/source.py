"""Writing a program as Python source: straight on, on arrays, with nothing left to decide."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..._core.size import contiguous_byte_strides
from ..._core.tensor import Tensor, View
from .._marks import run_inside
from ..capture.identity_guards import Facts
from ..plan.device.segments import device_segments
from ..plan.first_run import FirstRun
from ..plan.segment import Output, Segment, segments
from ..program.items import Call, DeviceSegment, Item, Outside, Read, Rewritten, SetGrad, Value, uses, values_in
from ..program.lower import lowered
from ..program.reads import differs
from .resume import KEY as RESUMABLE
from .resume import Resumable, called
from .text import Written, define, in_pieces, unless_known


class Source:
    """Lines of a function, and the constants that they name."""

    is_for_all_sizes = False
    """Whether the function takes other sizes than those of the recorded call."""

    def __init__(self, constants: dict[str, Any] | None = None, tensors: dict[int, str] | None = None) -> None:
        self.lines: list[str] = []
        self.device_segments: list[Any] = []
        """What devices do by themselves."""
        self.parts: list[Item | Segment] = []
        """What the lines run, one after the other."""
        self.behind: list[Any] = []
        """The stages of the backward part."""
        self.checks = 0
        """So many lines say whether a call is the recorded one."""
        self.facts: Facts | None = None
        """What is enough for some of them."""
        self.known: frozenset[int] = frozenset()
        """The positions of these."""
        self._refused: list[Written] = []
        """What is run where schedules refuse."""
        self._untried: dict[str, Segment] = {}
        """The schedules, by the names of what runs them."""
        self.resumable = Resumable()
        """How to go on if something fails while the lines run."""
        self._effects: int | None = None
        """The line with the first effect."""
        self.leave = "return MISS"
        """What to do where a read finds something else."""
        self.missed = [0]
        """The identity of the arguments of the last call in which a read has found something else."""
        self.tensors = tensors or {}
        """Where the tensors are that were there before, by their identity."""
        self.constants: dict[str, Any] = {} if constants is None else dict(constants)
        self.constants.update(
            Tensor=Tensor, View=View, new=Tensor._from_parts, ndarray=np.ndarray, asarray=np.asarray, empty=np.empty,
        )  # fmt: skip

    def constant(self, value: Any) -> str:
        """A name for a value."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def run_of(self, call: Call) -> str:
        """A name for what computes a call."""
        name = self.constant(lowered(call))
        if not isinstance(call, Rewritten):
            self.resumable.ops[name] = call.op
        return name

    def _noted_miss(self) -> str:
        """Source that notes that a read has found something else."""
        return f"{self.constant(self.missed)}[0] = id(args); "

    def number(self, value: Any) -> str:
        """A name for a value that depends on sizes."""
        return self.constant(value)

    def expression(self, tree: Any) -> str:
        """Source for arguments or results that hold values."""
        if type(tree) is Value:
            return f"v{tree.number}"
        if type(tree) is tuple and any(values_in(tree)):
            return f"({''.join([f'{self.expression(each)}, ' for each in tree])})"
        if type(tree) is list:
            return f"[{', '.join([self.expression(each) for each in tree])}]"
        if tree is None or type(tree) in (bool, int, str):
            return repr(tree)
        return self.constant(tree)

    def function(self, name: str, parameters: str) -> Any:
        """The function of the lines."""
        holds = self._all_hold()
        namespace = dict(self.constants)
        seldom = [*self._refused]
        pieces: list[Written] = []
        if holds is None:
            pieces, lines = in_pieces(self.lines, self.checks, parameters)
        else:
            every, lines = unless_known(self.lines, self.checks, parameters, holds, self.known)
            seldom.append(every)
        written = [*pieces, Written(name, parameters, lines)]
        define(written, namespace)
        for other in seldom:
            namespace[other.name] = functools.partial(other.define_and_call, namespace)
        for run, segment in self._untried.items():
            namespace[run] = FirstRun(segment, functools.partial(namespace.__setitem__, run))
        known = self.resumable
        known.lines = {name: lines, **{each.name: each.lines for each in self._refused}}
        known.parameters = {each.name: each.parameters for each in self._refused}
        known.checks = len(self.lines) - self.checks
        if self._effects is not None:
            known.begins = len(self.lines) - self._effects
        namespace[RESUMABLE] = known
        made = namespace[name]
        made.source = "\n".join([each.text for each in (*written, *seldom)])
        made.device_segments = self.device_segments
        return made

    def _all_hold(self) -> str | None:
        """An expression that tells whether the facts hold that stand for some checks; None: there are no such ones."""
        table = None if self.facts is None else self.facts.table
        if table is None:
            return None
        self.constants["facts"] = table
        return f"{self.constant(table.hold)}()"

    def items(self, items: Sequence[Item], kept: Iterable[Value]) -> None:
        """Write items; what none of the rest uses is let go, but for what is `kept`."""
        values = list(dict.fromkeys(kept))
        self.planned(segments(device_segments(items, values), values), values)

    def planned(self, parts: Sequence[Item | Segment], kept: Iterable[Value]) -> None:
        """Write items and schedules; what none of the rest uses is let go, but for what is `kept`."""
        self._parts(parts, {each.number for each in kept})

    def _parts(self, parts: Sequence[Item | Segment], staying: set[int]) -> None:
        self.parts += parts
        last: dict[int, int] = {}
        for position, part in enumerate(parts):
            for number in _numbers_used(part):
                last[number] = position
        for position, part in enumerate(parts):
            touched = _numbers_made(part) | _numbers_used(part)
            self._note_effects(part)
            if isinstance(part, Segment):
                self._segment(part)
            else:
                self._item(part)
            gone = [number for number in touched if last.get(number, position) == position and number not in staying]
            if gone:
                self.lines.append(f"{' = '.join([f'v{number}' for number in sorted(gone)])} = None")

    def _note_effects(self, part: Item | Segment) -> None:
        """Remember where the first thing happens that must not happen twice."""
        if isinstance(part, Read):
            self._effects = None  # random numbers that were drawn before it can be drawn again
        elif self._effects is None and _has_effects(part):
            self._effects = len(self.lines)

    def _segment(self, segment: Segment) -> None:
        """Write the call of a schedule, and what is to be done where that refuses."""
        made = [self._memory(each) for each in segment.outputs]
        given = [f"v{number}" for number in segment.inputs]
        run, table = self._runner(segment), self.constant(segment.runner.table)
        self.constants.setdefault("schedules", []).append(segment.runner)
        self.lines.append(f"if not {run}({', '.join([table, 'True', 'False', *given, *made])}):")
        self.lines.append(f"    {self._one_by_one(segment)}")
        if shared := [(name, each) for name, each in zip(made, segment.outputs, strict=True) if name.startswith("m")]:
            self.lines.append("else:")
            self.lines += [f"    {line}" for name, each in shared for line in self._windows_on(name, each)]
            self.lines.append(f"{' = '.join([name for name, _ in shared])} = None")
        for item in segment.windows:
            self._item(item)

    def _one_by_one(self, segment: Segment) -> str:
        """Write the ops of a schedule as a function of their own, which is seldom needed; the line that calls it."""
        before, self.lines = self.lines, []
        for item in segment.items:
            self._item(item)
        given = ", ".join([f"v{number}" for number in sorted(_numbers_used(segment))])
        made = "".join([f"v{number}, " for output in segment.outputs for number, _ in output.windows])
        written = Written(f"ops{len(self._refused) + 1}", given, [*self.lines, f"return {made or None}"])
        self.lines = before
        self._refused.append(written)
        return f"{made}= {written.name}({given})" if made else f"{written.name}({given})"

    def _runner(self, segment: Segment) -> str:
        """A name for what runs a schedule."""
        name = self.constant(None)
        self._untried[name] = segment
        self.resumable.runners.append(name)
        return name

    def _memory(self, output: Output) -> str:
        """Write the new memory for values; its name, which is that of the value if there is but one."""
        like, first = output.like, output.windows[0]
        name = f"{'v' if first[1].header is like else 'm'}{first[0]}"
        text = f"{like.shape}, {self.constant(like.dtype)}"
        in_order = like.strides == contiguous_byte_strides(like.shape, like.itemsize)  # also where a size is 1
        made = f"empty({text})" if in_order else f"ndarray({text}, None, 0, {like.strides})"
        self.lines.append(f"{name} = {made}")
        return name

    def _windows_on(self, name: str, output: Output) -> list[str]:
        """Lines for the values that lie in the same memory."""
        lines: list[str] = []
        for number, place in output.windows:
            header = place.header
            parts = header.shape, self.constant(header.dtype), name, place.offset, header.strides
            lines.append(f"v{number} = ndarray({', '.join(map(str, parts))})")
        return lines

    def _item(self, item: Item) -> None:
        if isinstance(item, Outside):
            self._outside(item)
        elif isinstance(item, Read):
            run, found = self.run_of(item.call), self.number(item.call.made)
            text = ", ".join([self.expression(each) for each in item.call.args])
            self.lines.append(f"if {self.constant(differs)}({run}({text}), {found}): {self._noted_miss()}{self.leave}")
        elif isinstance(item, DeviceSegment):
            self._device_segment(item)
        elif isinstance(item, SetGrad):
            tensor = self.tensors[id(item.tensor)]
            if item.value is None:
                self.lines.append(f"{tensor}._grad = None")
            else:
                self.lines.append(f"{tensor}._grad = {self.tensor(item.value, item.kind)}")
        else:
            self._call(item)

    def _device_segment(self, device_segment: DeviceSegment) -> None:
        """Write the call of a function of its own, which the device's backend makes quick."""
        inner = Source()
        inner._parts(device_segment.calls, {each.number for each in device_segment.results})
        made, given = (
            [f"v{each.number}" for each in values] for values in (device_segment.results, device_segment.inputs)
        )
        inner.lines.append(f"return [{', '.join(made)}]")
        listed = inner.function("segment", ", ".join(given))
        run = device_segment.backend.functions["segments"].GraphSegment(listed, device_segment.written)
        self.device_segments.append(run)
        text = f"{self.constant(run)}({', '.join(given)})"
        self.lines.append(f"{', '.join(made)}, = {text}" if made else text)

    def _outside(self, item: Outside) -> None:
        prepare = getattr(item.function, "prepare", None)
        ready = None if prepare is None else prepare(*item.args, **item.kwargs)
        if ready is not None:
            name = self.constant(ready)
            self.resumable.outside[name] = functools.partial(item.function, *item.args, **item.kwargs)
            self.lines.append(f"{name}()")
            return
        given = [self.constant(each) for each in (run_inside, item.function, item.args, item.kwargs)]
        self.resumable.outside[given[0]] = called
        self.lines.append("{}({}, {}, {})".format(*given))

    def tensor(self, value: Value, kind: Any, of_inference: bool = False) -> str:
        """Source for a new tensor over a value; those that inference mode makes count no versions."""
        return f"new((v{value.number}, {self.constant(kind)}, {None if of_inference else [0, None]}))"

    def _call(self, call: Call) -> None:
        run = self.run_of(call)
        self._assign(call, f"{run}({', '.join([self.expression(each) for each in call.args])})  # {call.name}")

    def _assign(self, call: Call, text: str) -> None:
        """Write that what `text` gives are the results of a call."""
        made = call.results
        if type(made) is Value:
            self.lines.append(f"v{made.number} = {text}")
            self._as_array(f"v{made.number}", call.made)
        elif type(made) is list:
            names = [f"v{each.number}" if type(each) is Value else "_" for each in made]
            self.lines.append(f"{', '.join(names)}, = {text}" if names else text)
            for name, each in zip(names, call.made, strict=True):
                self._as_array(name, each)
        else:
            self.lines.append(text)

    def _as_array(self, name: str, example: Any) -> None:
        """Write that a result without dimensions is an array: array libraries make numbers of some."""
        if not isinstance(example, Tensor) or example._array.ndim:
            return
        if example._kind.is_cpu:
            self.lines.append(f"if type({name}) is not ndarray: {name} = asarray({name})")
        else:
            self.lines.append(f"{name} = {self.constant(example._kind.backend.asarray)}({name})")


def _has_effects(part: Item | Segment) -> bool:
    """Whether a part may change what was there before, or draws random numbers."""
    if isinstance(part, Segment):
        return bool(part.changed)
    if isinstance(part, Call):
        return bool(part.op.writes or part.op.draws)
    return isinstance(part, (Outside, SetGrad)) or (isinstance(part, DeviceSegment) and bool(part.written))


def _numbers_used(part: Item | Segment) -> set[int]:
    used: set[int] = set()
    made: set[int] = set()
    for item in part.items if isinstance(part, Segment) else [part]:  # in order: an op may give back what it was given
        used |= {value.number for value in uses(item)} - made
        made |= {value.number for value in values_in(getattr(item, "results", None))}
    return used


def _numbers_made(part: Item | Segment) -> set[int]:
    """The values that have names afterwards."""
    items = part.items if isinstance(part, Segment) else [part]
    return {value.number for item in items for value in values_in(getattr(item, "results", None))}
