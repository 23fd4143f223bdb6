"""Run pytest under whatever `torch` there is, and write what became of each test as it ends, one line of JSON each.

    python suite_child.py REPORT SECONDS pytest's arguments...

A test that takes more than so many seconds of processor time fails. Lines are written at once, so that a run that a
crash or its limit ends has told about the tests before. A line with a name and no outcome is a test that begins.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Reporter:
    """Writes outcomes and ends tests that take too long."""

    def __init__(self, report: Path, seconds: float) -> None:
        self.report, self.seconds = report, seconds

    def write(self, test: str, outcome: str | None, file: str = "") -> None:
        """One line: the test's file with its classes, two colons, its name; the outcome; the file's path."""
        place, _, name = test.partition("::")
        *classes, name = name.split("::") if "[" not in name else _before_parameters(name)
        place = ".".join([place.removesuffix(".py").replace("/", "."), *classes])
        with self.report.open("a") as lines:
            lines.write(json.dumps([f"{place}::{name}", outcome, file]) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Say that a test begins, and interrupt it when its time is up."""
        self.write(item.nodeid, None, str(item.path))
        signal.signal(signal.SIGPROF, self._too_long)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _too_long(self, *_: Any) -> None:
        pytest.fail(f"took more than {self.seconds:g} seconds of processor time")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One outcome a test: of its call, or of what failed before or after it."""
        if report.failed:
            self.write(report.nodeid, _reason(report))
        elif report.skipped:
            self.write(report.nodeid, "skipped")
        elif report.when == "call":
            self.write(report.nodeid, "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported."""
        if report.failed:
            self.write(f"::{report.nodeid.removesuffix('.py').replace('/', '.')}", _reason(report))


def _before_parameters(name: str) -> list[str]:
    start, bracket, parameters = name.partition("[")
    return [*start.split("::")[:-1], start.split("::")[-1] + bracket + parameters]


def _reason(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else str(report.longrepr)).strip().splitlines() or ["fails"]
    return (lines[0] if crash else lines[-1])[:160]


def main(report: str, seconds: str, *arguments: str) -> int:
    """Run pytest."""
    return int(pytest.main(list(arguments), plugins=[Reporter(Path(report), float(seconds))]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
