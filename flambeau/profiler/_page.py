"""A profile as one HTML page that needs nothing else: the ops over time, by time, and the memory with its peak."""

from __future__ import annotations

import html
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from ..autograd.profiler_util import EventList, FunctionEvent
from ._memory_timeline import CATEGORIES, MemoryTimeline
from ._profile import profile

_MOST_EVENTS = 50_000
"""More than that no browser draws in a moment."""
_MOST_PIECES = 200


def page(prof: profile, title: str) -> str:
    """The text of the page."""
    recorder = prof._recorder
    assert recorder is not None
    events = prof._finished()
    start = recorder.started / 1e3
    last = max((event.time_range.end for event in events), default=start)
    depths = _depths(events)
    ops = [event for event in events if not event.is_user_annotation]
    document = {
        "title": title,
        "duration": max(last - start, 1.0),
        "count": len(ops),
        "busy": sum(event.self_cpu_time_total for event in ops),
        "depth": max(depths.values(), default=0),
        "events": [_event(event, depths[id(event)], start) for event in events[:_MOST_EVENTS]],
        "ops": _by_name(ops),
        "memory": None if recorder.memory is None else _memory(prof.memory_timeline(), recorder.started),
    }
    data = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")  # so that no text can end the element
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    template = template.replace("<title>Profile</title>", f"<title>{html.escape(title)}</title>")
    return template.replace("__DATA__", data)


def _depths(events: EventList) -> dict[int, int]:
    """In how many others each event ran, by its id."""
    found: dict[int, int] = {}
    for event in events:  # in the order of their start: what contains another comes first
        found[id(event)] = 0 if event.cpu_parent is None else found[id(event.cpu_parent)] + 1
    return found


def _event(event: FunctionEvent, depth: int, start: float) -> dict[str, Any]:
    return {
        "name": event.trace_name,
        "start": round(event.time_range.start - start, 1),
        "end": round(event.time_range.end - start, 1),
        "depth": depth,
        "range": event.is_user_annotation,
        "shapes": str(event.input_shapes) if any(event.input_shapes) else "",
        "module": event.module,
        "line": next(iter(event.stack), ""),
    }


def _by_name(ops: list[FunctionEvent]) -> list[dict[str, Any]]:
    """The ops by name, each with the line that spent most time in it."""
    groups: dict[str, list[FunctionEvent]] = defaultdict(list)
    for event in ops:
        groups[event.name].append(event)
    rows = []
    for name, group in groups.items():
        lines: Counter[str] = Counter()
        for event in group:
            lines[next(iter(event.stack), "")] += int(event.self_cpu_time_total * 1000)
        rows.append(
            {
                "name": name,
                "self": sum(event.self_cpu_time_total for event in group),
                "total": sum(event.cpu_time_total for event in group),
                "calls": len(group),
                "made": sum(event.own_memory for event in group),
                "flops": sum(event.flops for event in group),
                "line": lines.most_common(1)[0][0],
            }
        )
    return rows


def _memory(timeline: MemoryTimeline, started: int) -> dict[str, Any]:
    times, sizes = timeline.series()
    moment, most, pieces = timeline.peak()
    return {
        "times": [time - started / 1e3 for time in times],
        "sizes": sizes,
        "categories": CATEGORIES,
        "peak": {
            "time": (moment - started) / 1e3,
            "bytes": most,
            "pieces": [
                {
                    "bytes": piece.block.nbytes,
                    "shape": "x".join(map(str, piece.block.shape)) or "0-d",
                    "dtype": piece.block.dtype,
                    "category": piece.category,
                    "made_by": piece.made_by,
                    "time": (piece.start - started) / 1e3,
                    "line": next(iter(piece.stack), ""),
                    "stack": "\n".join(piece.stack),
                }
                for piece in pieces[:_MOST_PIECES]
            ],
        },
    }
