"""Interpreters that tests look at ops with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._dispatch.interpreter import Interpreter
from flambeau._dispatch.op import Op


class Log(Interpreter):
    """Runs every op as usual and takes down its name, its arguments and its results."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], Any]] = []

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        results = op(*args)
        self.calls.append((op.name, tuple(args), results))
        return results

    @property
    def names(self) -> list[str]:
        """The names of the ops in the order in which they ended."""
        return [name for name, _, _ in self.calls]


def heard(action: Callable[[], Any]) -> list[str]:
    """The names of the ops that `action` runs."""
    with Log() as log:
        action()
    return log.names
