"""Device segments of a program that a device does without Python: its backend may run them by one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...._core.backend import Backend
from ...._core.tensor import Tensor
from ...program.items import Call, DeviceSegment, Item, Value, uses, values_in
from .changes import with_single_changes
from .class_loss import with_class_losses
from .epilogues import with_epilogues
from .fuse import fused
from .uses import memory_of, pairs

_LEAST_CALLS = 3
"""Fewer calls are started one by one as quickly."""


def device_segments(items: Sequence[Item], kept: Iterable[Value]) -> list[Item]:
    """The items, with device segments in place of calls that one device does at once; `kept`: what is needed later."""
    last = {value.number: position for position, item in enumerate(items) for value in uses(item)}
    last.update({each.number: len(items) for each in kept})
    found: list[Item] = []
    start = 0
    while start < len(items):
        backend, end = _backend_of(items[start]), start + 1
        while backend is not None and end < len(items) and _backend_of(items[end]) is backend:
            end += 1
        calls = [each for each in items[start:end] if type(each) is Call]
        if backend is None or sum([not each.op.makes_windows for each in calls]) < _LEAST_CALLS:
            found += items[start:end]
        else:
            found.append(_device_segment(calls, end, last, backend))
        start = end
    return found


def _device_segment(calls: list[Call], end: int, last: dict[int, int], backend: Backend) -> DeviceSegment:
    made: dict[Value, None] = {}
    inputs: dict[Value, Any] = {}
    changed: set[int] = set()
    for call in calls:
        given = pairs(call.args, call.examples)
        inputs.update({value: example for value, example in given if value not in made})
        for position in call.op.writes:
            written = pairs([call.args[position]], [call.examples[position]])
            changed.update([memory_of(each) for _, each in written])
        made.update(dict.fromkeys([each for each in values_in(call.results) if each not in inputs]))
    results = [each for each in made if last.get(each.number, -1) >= end]
    shorter = with_single_changes(calls, results)
    shorter = with_class_losses(shorter, results, backend.functions["class_loss"])
    pointwise = backend.functions["pointwise"]
    shorter = with_epilogues(shorter, results, backend.functions["norms"], pointwise)
    return DeviceSegment(
        fused(shorter, results, pointwise),
        list(inputs),
        results,
        [position for position, each in enumerate(inputs.values()) if memory_of(each) in changed],
        backend,
    )


def _backend_of(item: Item) -> Backend | None:
    """What does an item by itself; None: the host does it, or has a part in it."""
    if type(item) is not Call or item.op.reads:
        return None
    tensors = [*_tensors(item.examples), *_tensors(item.made)]
    backends = {each._kind.backend for each in tensors}
    if len(backends) != 1:
        return None
    backend = backends.pop()
    return backend if backend.is_compiled_for else None


def _tensors(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    return [found for each in tree for found in _tensors(each)] if type(tree) in (list, tuple) else []
