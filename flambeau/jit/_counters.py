"""Counters by name, under the names of PyTorch's logger of TorchScript."""

from __future__ import annotations

import enum

from .._core.process.locks import new_lock


class AggregationType(enum.IntEnum):
    """What a counter says of the values that it was given."""

    SUM = 0
    AVG = 1

    def __str__(self) -> str:
        return f"AggregationType.{self.name}"


SUM, AVG = AggregationType.SUM, AggregationType.AVG


class LoggerBase:
    """What counts events by name."""

    def add_stat_value(self, name: str, value: int) -> None:
        """Give a counter a value."""
        raise NotImplementedError


class NoopLogger(LoggerBase):
    """A logger that counts nothing."""

    def add_stat_value(self, name: str, value: int) -> None:
        """Nothing."""


class LockingLogger(LoggerBase):
    """Counts, from any thread."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._kinds: dict[str, AggregationType] = {}
        self._values: dict[str, list[int]] = {}

    def add_stat_value(self, name: str, value: int) -> None:
        """Give a counter a value."""
        with self._lock:
            self._values.setdefault(name, []).append(value)

    def set_aggregation_type(self, name: str, type: AggregationType) -> None:
        """Whether a counter is the sum or the mean of its values."""
        with self._lock:
            self._kinds[name] = type

    def get_counter_val(self, name: str) -> int:
        """What a counter says now; 0 before its first value."""
        with self._lock:
            values = self._values.get(name, [])
            if not values:
                return 0
            return sum(values) // len(values) if self._kinds.get(name) is AVG else sum(values)


_current: list[LoggerBase] = [NoopLogger()]


def get_logger() -> LoggerBase:
    """The logger that counts now."""
    return _current[0]


def set_logger(logger: LoggerBase) -> LoggerBase:
    """Let another logger count; the one before."""
    before, _current[0] = _current[0], logger
    return before


def add_stat_value(name: str, value: int) -> None:
    """Give a counter of the present logger a value."""
    get_logger().add_stat_value(name, value)
