"""What a recorder noted, as events: names, stacks as text, and what ran inside of what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import CodeType
from typing import Any

from .._core.process.caller import line_of
from .._dispatch.public.overloads import profiled_name
from ..autograd.profiler_util import EventList, FunctionEvent
from ._recorder import Details, Recorder


def events_of(recorder: Recorder) -> EventList:
    """The events of a recorder, in the order of their start."""
    notes = sorted(recorder.notes, key=lambda note: (note[1], -note[2]))
    events = EventList()
    running: list[FunctionEvent] = []
    for position, (what, start, end, *noted) in enumerate(notes):
        details = Details(*noted)
        is_range = isinstance(what, str)
        event = FunctionEvent(
            position, what if isinstance(what, str) else profiled_name(what), recorder.thread, start / 1e3, end / 1e3,
            input_shapes=[_as_lists(each) for each in details.shapes], stack=stack_of(details.frames),
            flops=details.flops, memory=details.nbytes, module=details.module, is_user_annotation=is_range,
        )  # fmt: skip
        while running and running[-1].time_range.end < event.time_range.end:
            running.pop()
        if running:
            running[-1].append_cpu_child(event)
        running.append(event)
        events.append(event)
    spans = [(name, each.span()) for name, each in recorder.under_way]
    events.spans = [(name, span[0] / 1e3, span[1] / 1e3) for name, span in spans if span is not None]
    return events


def _as_lists(shape: Any) -> list[Any]:
    """A shape, or shapes in lists, as PyTorch lists them."""
    return [each if isinstance(each, int) else _as_lists(each) for each in shape]


@cache
def _frame_as_text(code: CodeType, instruction: int) -> str:
    file, line, _ = line_of((code, instruction))
    return f"{file}({line}): {code.co_name}"


def stack_of(frames: Sequence[CodeType | int]) -> list[str]:
    """The frames that a recorder noted, as text."""
    texts = []
    for place in range(0, len(frames), 2):
        code, instruction = frames[place], frames[place + 1]
        assert isinstance(code, CodeType)
        assert isinstance(instruction, int)
        texts.append(_frame_as_text(code, instruction))
    return texts
