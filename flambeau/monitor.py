"""Events of long runs, under the names of `torch.monitor`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import datetime
from typing import Any

__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "log_event",
    "register_event_handler", "unregister_event_handler",
]  # fmt: skip


class Event:
    """Something that happened: a name, a time and data."""

    def __init__(self, name: str, timestamp: datetime, data: dict[str, Any]) -> None:
        self.name = name
        self.timestamp = timestamp
        self.data = data


class EventHandlerHandle:
    """Takes a handler off again, in `unregister_event_handler`."""

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self.callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Call a function with every event from now on."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Call it no longer."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Tell all handlers of an event."""
    for handle in _handlers.copy():
        handle.callback(event)


class Aggregation(enum.Enum):
    """What a `Stat` makes of its values."""

    VALUE = 0
    MEAN = 1
    COUNT = 2
    SUM = 3
    MAX = 4
    MIN = 5


class Stat:
    """Values of which, every so many, statistics are logged as an event."""

    def __init__(
        self, name: str, aggregations: list[Aggregation], window_size: Any, max_samples: int | None = None
    ) -> None:
        self.name = name
        self._aggregations = list(aggregations)
        self._max_samples = max_samples
        self._values: list[float] = []

    def add(self, v: float) -> None:
        """Take a value in."""
        self._values.append(v)
        if self._max_samples is not None and len(self._values) >= self._max_samples:
            data = {f"{self.name}.{each.name.lower()}": value for each, value in self.get().items()}
            log_event(Event("torch.monitor.Stat", datetime.now(), data))
            self._values.clear()

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self._values)

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the values so far."""
        values = self._values
        if not values:
            return {}
        of: dict[Aggregation, float] = {
            Aggregation.VALUE: values[-1], Aggregation.MEAN: sum(values) / len(values),
            Aggregation.COUNT: len(values), Aggregation.SUM: sum(values), Aggregation.MAX: max(values),
            Aggregation.MIN: min(values),
        }  # fmt: skip
        return {each: of[each] for each in self._aggregations}


class TensorboardEventHandler:
    """Writes the events of `Stat`s to a `SummaryWriter`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == "torch.monitor.Stat":
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
