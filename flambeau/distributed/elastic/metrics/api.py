"""Numbers about a program that someone may want to collect: where they go is chosen for each group of them."""

from __future__ import annotations

import abc
import functools
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from typing import Any

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler",
    "configure", "getStream", "get_elapsed_time_ms", "prof", "profile", "put_metric",
]  # fmt: skip

MetricData = namedtuple("MetricData", ["timestamp", "group_name", "name", "value"])


class MetricsConfig:
    """Settings of a handler."""

    __slots__ = ["params"]

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = params or {}


class MetricHandler(abc.ABC):
    """What takes the numbers that are measured."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Take one."""


class ConsoleMetricHandler(MetricHandler):
    """A handler that prints what is measured."""

    def emit(self, metric_data: MetricData) -> None:
        """Print one."""
        sys.stdout.write(
            f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}\n"
        )


class NullMetricHandler(MetricHandler):
    """A handler that forgets what is measured."""

    def emit(self, metric_data: MetricData) -> None:
        """Forget one."""


class MetricStream:
    """The numbers of one group."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Send a number to where those of the group go."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str, MetricHandler] = {}
_default: list[MetricHandler] = [NullMetricHandler()]
_DEFAULT_GROUP = "torchelastic"


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Choose where the numbers of a group go, or those of all groups that have no choice of their own."""
    if group is None:
        _default[0] = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:
    """The numbers of a group."""
    return MetricStream(group, _handlers.get(group, _default[0]))


def put_metric(metric_name: str, metric_value: int, metric_group: str = _DEFAULT_GROUP) -> None:
    """Send a number to where those of its group go."""
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """The milliseconds since a time of `time.time()`."""
    return int((time.time() - start_time_in_seconds) * 1000)


def prof(fn: Callable[..., Any] | None = None, group: str = _DEFAULT_GROUP) -> Any:
    """A decorator: count calls that succeed and that fail, and how long they take."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = f"{function.__module__}.{function.__qualname__}"

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            start = time.time()
            try:
                result = function(*args, **kwargs)
                put_metric(f"{name}.success", 1, group)
                return result
            except Exception:
                put_metric(f"{name}.failure", 1, group)
                raise
            finally:
                put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)

        return counted

    return decorate if fn is None else decorate(fn)


def profile(group: str | None = None) -> Any:
    """Measure a function: `prof` under an older name."""
    return prof(group=group or _DEFAULT_GROUP)
