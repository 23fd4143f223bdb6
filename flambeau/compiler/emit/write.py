"""Writing the program of a recorded call as source: its checks, its items, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.node import save
from ..capture.guards import MISS, State
from ..capture.mutations import Change
from ..capture.recorder import Recorder
from ..capture.settings import settings
from ..capture.watch import Watch
from ..passes.casts import weights_in
from ..program.items import Item, Outside, Value
from .backward import FreedBackward, Joint, Region
from .outline import Outline, describe
from .partly_planned import Parts
from .patterns import pattern_of
from .results import Answer, answer_of, counted_versions
from .sizes import Family, SizedRegion, SizedSource, family_of, sized_checks
from .source import Source
from .text import checks_left, letting_go


@dataclass
class Recording:
    """A call that was made and written down."""

    state: State
    recorder: Recorder
    joint: Joint | None
    """The backward pass of the call, if its results have a history."""
    call: tuple[tuple[Any, ...], dict[str, Any]]
    result: Any
    known: tuple[Any, ...]
    """The settings under which it ran."""
    watch: Watch
    changes: Sequence[Change] = ()
    """What it has changed in Python."""


def built_for_sizes(recording: Recording, families: list[Family]) -> Callable[..., Any] | None:
    """Build a program for sizes of all kinds; None: a program that is there has the call now."""
    state = recording.state
    source = SizedSource(state.constants, places_of(state))
    checks, key, sizes = sized_checks(state)
    source.of_sizes = state.of_sizes
    checks += [f"row = TABLE[{key}]", "if row is None: return MISS"]
    outline = outlined(source, checks, recording)
    outline.fill()
    source.lines.insert(1 + len(checks), source.unpacked())
    begin, end = source.span_of_items
    source.span_of_items = begin + 1, end + 1
    family = family_of(families, source, sizes, recording.recorder.program.items)
    if family is None:
        return None
    family.pattern = pattern_of(recording, source, outline)
    if family.pattern is not None and recording.joint is None:
        family.parts = Parts(source, outline, 1 + len(checks))
    describe(family.program, source, outline.items)
    source.parts.clear()  # the source is kept, to be compared with; the arrays of the recorded call are not
    return family.program


def places_of(state: State) -> dict[int, str]:
    """Where the tensors are that were there before, by their identity."""
    return {id(tensor): held.removesuffix("._array") for tensor, held in state.tensors.values()}


def still_holds(state: State, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether all checks of a call hold now."""
    source, lines = Source(state.constants), state.lines
    if state.facts.all_hold():
        lines = checks_left(lines, state.facts.lines)
    source.lines, source.checks = [*lines, "return None"], len(lines)
    return source.function("checks", "args, kwargs")(args, kwargs) is not MISS


def write_checks(source: Source, checks: Sequence[str], recording: Recording) -> None:
    """Write what has to hold for a call to be the recorded one."""
    state = recording.state
    source.constants.update(settings=settings, kept=state.kept)
    source.lines.append(f"if settings() != {source.constant(recording.known)}: return MISS")
    if len(checks) >= len(state.lines):  # with lines for sizes in the place of others, and behind them
        source.facts = state.facts
        source.known = frozenset([len(source.lines) + each for each in state.facts.lines])
    source.lines += checks
    forgotten = _forgotten(recording.recorder.program.items)
    of_gradients = [line for key, lines in state.of_gradients.items() if key not in forgotten for line in lines]
    source.lines += [*of_gradients, *letting_go(of_gradients, state.tensors.values())]
    source.checks = len(source.lines)


def write(source: Source, checks: Sequence[str], recording: Recording) -> tuple[list[Item], list[Value]]:
    """Write the program of a call behind its checks; the items of its forward part, and the values wanted of them."""
    outline = outlined(source, checks, recording)
    outline.fill()
    return outline.items, outline.wanted


def outlined(source: Source, checks: Sequence[str], recording: Recording) -> Outline:
    """Write what stands around the items of the program of a call: its checks, and what it gives back."""
    state, recorder, joint = recording.state, recording.recorder, recording.joint
    program = recorder.program
    tensors = source.tensors
    write_checks(source, checks, recording)
    answered = answer_of(source, recording)
    answer, text, wanted = answered.answer, answered.text, answered.wanted
    items, regions = program.items, []
    if joint is not None and not joint.freed:
        items, region = _with_node(source, recorder, joint, answer, wanted, tensors)
        regions.append(region)
    elif joint is not None:
        outputs = source.number(tuple([(each._array.shape, each._kind) for each in joint.outputs]))
        source.constants["FreedBackward"] = FreedBackward
        source.lines.append(f"node = FreedBackward({outputs})")
        answer.attach(joint.outputs)
    arriving = set() if joint is None else {each.number for each in joint.arriving}
    for number, tensor in program.inputs.items():
        if number not in arriving:
            source.lines.append(f"v{number} = {state.tensors[id(tensor._array)][1]}")
    behind = [*counted_versions(state, recorder.changes()), *answer.lines, *answer.changes, f"return {text}"]
    source.resumable.begins = len(answer.changes) + 1 if answer.changes else 0
    weights = weights_in(program) if joint is None else {}
    return Outline(source, items, wanted, behind, regions, weights, answered)


def _forgotten(items: Sequence[Item]) -> set[int]:
    """The tensors whose gradients are forgotten before anything else happens: it does not matter what they were."""
    found: set[int] = set()
    for item in items:
        if (
            not isinstance(item, Outside)
            or getattr(item.function, "__name__", "") != "zero_grad"
            or item.args != (True,)
        ):
            break
        found.update([id(each) for group in item.function.__self__.param_groups for each in group["params"]])
    return found


def _with_node(
    source: Source,
    recorder: Recorder,
    joint: Joint,
    answer: Answer,
    wanted: list[Value],
    tensors: dict[int, str],
) -> tuple[list[Item], Region]:
    """Write the node that joins the results to the inputs; the items of the forward part, and the backward part."""
    program = recorder.program
    forward, backward, saved = joint.parts(program, source.is_for_all_sizes)
    outputs = {recorder.value_of(each): each for each in joint.outputs}
    others = [each for each in saved if each.number in program.inputs or each in outputs]
    arrays = [each for each in saved if each not in others]
    behind = [*others, *arrays]
    made: Region
    if isinstance(source, SizedSource):
        made = SizedRegion(joint, backward, behind)
        region = source.number(made)
    else:
        made = Region(joint, backward, behind)
        region = source.constant(made.node)
    wanted += arrays
    inputs = "".join([f"{tensors[id(each)]}, " for each in joint.inputs])
    places = [
        tensors[id(program.inputs[each.number])] if each.number in program.inputs else answer.expression(outputs[each])
        for each in others
    ]
    source.constants["save"] = save
    source.lines.append(f"node = {region}(({inputs}))")  # before any effect: what can fail is to fail here
    answer.lines += [
        f"node._tensors = [{', '.join([f'save({each})' for each in places])}]",
        f"node._arrays = [{', '.join([f'v{each.number}' for each in arrays])}]",
    ]
    answer.attach(joint.outputs)
    return forward, made
