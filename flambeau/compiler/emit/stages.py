"""What programs consist of, for people who look inside: stages with their ops and kernels, and none of their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core.process.caller import Place, line_of
from ..._core.tensor import Tensor
from ..plan.segment import Segment
from ..program.items import Call, DeviceSegment, Item, Outside, Read, SetGrad, values_in

Shape = tuple[str, tuple[int, ...]]
"""A dtype and sizes."""


@dataclass
class Step:
    """One op."""

    name: str
    given: list[int]
    """The numbers of the values that it reads."""
    made: list[int]
    shapes: list[Shape]
    """Of what it makes."""
    place: Place | None

    @property
    def line(self) -> tuple[str, int, str]:
        """The user's line: file, number and text."""
        return ("", 0, "") if self.place is None else line_of(self.place)


@dataclass
class Stage:
    """What a program does without coming back to Python in between: an op, or a schedule of several."""

    kind: str
    """schedule, graph (of a device), op, check, gradient or Python."""
    steps: list[Step] = field(default_factory=list)
    calls: list[tuple[Any, tuple[Any, ...]]] = field(default_factory=list)
    """The functions that a schedule calls, and what they are given."""
    scratch: int = 0
    """Bytes of memory that it keeps for what lies between its ops."""
    results: int = 0
    """Bytes of what it hands on."""
    seconds: float | None = None
    """How long it takes, if that was measured."""
    backward: bool = False

    @property
    def name(self) -> str:
        """The stage as reports show it: by its ops, or by what else it does."""
        names = [each.name for each in self.steps]
        return " -> ".join(names) if len(names) < 5 else f"{' -> '.join(names[:3])} -> ... -> {names[-1]}"


def stages_of(parts: Sequence[Item | Segment], backward: bool = False) -> list[Stage]:
    """The stages of the parts of a program."""
    found = [_stage(each) for each in parts]
    for each in found:
        each.backward = backward
    return found


def _stage(part: Item | Segment) -> Stage:
    if isinstance(part, Segment):
        made = sum([each.like.nbytes for each in part.outputs])
        return Stage("schedule", [_step(each) for each in part.items], _listed(part), part.runner.scratch, made)
    if isinstance(part, Call):
        return Stage("op", [_step(part)], results=sum([each._array.nbytes for each in _tensors(part.made)]))
    if isinstance(part, DeviceSegment):
        return Stage("graph", [_step(each) for each in part.calls])
    if isinstance(part, Read):
        return Stage("check", [_step(part.call)])
    if isinstance(part, SetGrad):
        given = [] if part.value is None else [part.value.number]
        return Stage("gradient", [Step("grad = None" if part.value is None else "grad", given, [], [], None)])
    assert isinstance(part, Outside)
    return Stage("Python", [Step(getattr(part.function, "__qualname__", repr(part.function)), [], [], [], None)])


def _step(call: Call) -> Step:
    shapes = [(each._kind.dtype.name, each._array.shape) for each in _tensors(call.made)]
    return Step(call.name, _numbers(call.args), _numbers(call.results), shapes, call.place)


def _numbers(tree: Any) -> list[int]:
    return list(dict.fromkeys([each.number for each in values_in(tree)]))


def _tensors(made: Any) -> list[Tensor]:
    return [each for each in (made if type(made) in (list, tuple) else [made]) if isinstance(each, Tensor)]


def _listed(segment: Segment) -> list[tuple[Any, tuple[Any, ...]]]:
    return [
        (function, args if options is None else (*args, options["out"]))
        for function, args, options in segment.runner.calls
    ]


def joined(stages: Sequence[Stage]) -> list[Stage]:
    """The stages, with gradients that are set one after the other as one."""
    found: list[Stage] = []
    for stage in stages:
        if stage.kind == "gradient" and found and found[-1].kind == "gradient":
            given = [*found[-1].steps[0].given, *stage.steps[0].given]
            found[-1] = Stage(
                "gradient", [Step(f"{len(given)} gradients", given, [], [], None)], backward=stage.backward
            )
        else:
            found.append(stage)
    return found
