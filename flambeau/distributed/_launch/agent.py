"""One launcher on each machine: they meet at a store, agree on ranks, and start again together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import FrameType

from .._errors import DistError, DistStoreError
from ..stores import PrefixStore, Store
from ..tcp_store import TCPStore
from .options import Options
from .workers import Failure, Workers

_SOON = timedelta(milliseconds=1)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGINT,)


class Interrupted(Exception):
    """The launcher was told to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Agent:
    """The launcher of this machine."""

    def __init__(self, options: Options) -> None:
        self.options = options
        serves = options.standalone or (options.node_rank == 0 if options.numbered else True)
        timeout = timedelta(seconds=options.join_timeout)
        self._served = TCPStore(
            options.host, options.port, None, serves, timeout, wait_for_workers=False, multi_tenant=not options.numbered
        )
        self._store = PrefixStore(f"launch/{options.run_id}", self._served)
        self._made_folder: tempfile.TemporaryDirectory[str] | None = None
        if options.log_dir is None:
            self._made_folder = tempfile.TemporaryDirectory(prefix="flambeau-launch-", ignore_cleanup_errors=True)
        self._folder = Path(options.log_dir or str(self._made_folder and self._made_folder.name)) / options.run_id

    @property
    def port(self) -> int:
        """Where the machines meet."""
        return self._served.port

    def run(self) -> list[Failure]:
        """Run the program to its end; the processes that failed in the last attempt."""
        try:
            with interruptible():
                for attempt in range(self.options.max_restarts + 1):
                    failures = self._attempt(attempt)
                    if not failures:
                        break
                    if attempt < self.options.max_restarts:
                        say(f"starts again, {attempt + 1} of {self.options.max_restarts} times, after {failures[0]}")
                return failures
        finally:
            self.close()

    def close(self) -> None:
        """Leave the meeting, and remove the logs that nobody asked for."""
        self._served.close()
        if self._made_folder is not None:
            self._made_folder.cleanup()

    def _attempt(self, attempt: int) -> list[Failure]:
        """Start all processes and wait for their end; those that failed, here or on another machine."""
        meeting = PrefixStore(f"attempt{attempt}", self._store)
        node, sizes = self._meet(meeting)
        workers = Workers(self.options, self._environments(node, sizes, attempt), self._folder / f"attempt_{attempt}")
        number = signal.SIGTERM
        try:
            while True:
                time.sleep(self.options.interval)
                failures = workers.failures()
                if failures:
                    meeting.set("failed", json.dumps([failures[0].rank, node, str(failures[0])]))
                    time.sleep(self.options.interval)  # others may have failed before, and be noticed now
                    return workers.failures()
                elsewhere = self._failure_elsewhere(meeting, node)
                if elsewhere is not None:
                    return [elsewhere]
                if workers.are_done():
                    return self._wait_for_others(meeting, len(sizes), node)
        except Interrupted as interruption:
            number = signal.Signals(interruption.number)
            raise
        finally:
            workers.end(number)

    def _meet(self, meeting: Store) -> tuple[int, list[int]]:
        """The number of this machine, and how many processes each machine has."""
        options = self.options
        node = options.node_rank if options.numbered else meeting.add("machines", 1) - 1
        meeting.set(f"processes/{node}", str(options.per_node))
        if node == 0:
            meeting.set("count", str(self._count(meeting)))
        count = int(meeting.get("count"))
        if node >= count:
            raise DistError(f"{count} machines were enough, and this one came too late")
        keys = [f"processes/{each}" for each in range(count)]
        try:
            return node, [int(each) for each in meeting.multi_get(keys)]
        except DistStoreError:
            missing = [str(each) for each, key in enumerate(keys) if not meeting.check([key])]
            raise DistError(f"machine {' and '.join(missing)} did not come to the meeting in time") from None

    def _count(self, meeting: Store) -> int:
        """How many machines take part: all, or at least as many as are needed when no more come."""
        options = self.options
        if options.numbered or options.fewest == options.most:
            return options.most
        began = last = time.monotonic()
        come = 0
        while come < options.most:
            now = meeting.add("machines", 0)
            if now > come:
                come, last = now, time.monotonic()
            if come >= options.fewest and time.monotonic() - last > options.last_call:
                break
            if time.monotonic() - began > options.join_timeout:
                raise DistError(f"only {come} machines came, and {options.fewest} are needed")
            time.sleep(0.05)
        return min(come, options.most)

    def _failure_elsewhere(self, meeting: Store, node: int) -> Failure | None:
        if self.options.most == 1 or not meeting.check(["failed"]):
            return None
        rank, where, text = json.loads(meeting.get("failed"))
        return None if where == node else Failure(rank, -1, -1, 1, f"on machine {where}: {text}", time.time())

    def _wait_for_others(self, meeting: Store, count: int, node: int) -> list[Failure]:
        """Those who have done their part wait until all have: somebody else may fail, and then all start again."""
        if meeting.add("done", 1) >= count:
            meeting.set("all done", "1")
        while not meeting.check(["all done"]):
            failure = self._failure_elsewhere(meeting, node)
            if failure is not None:
                return [failure]
            time.sleep(self.options.interval)
        if node == 0 and count > 1:  # the others still have to read it here
            meeting.add("gone", 1)
            until = time.monotonic() + 5
            while meeting.add("gone", 0) < count and time.monotonic() < until:
                time.sleep(0.02)
        elif count > 1:
            meeting.add("gone", 1)
        return []

    def _environments(self, node: int, sizes: list[int], attempt: int) -> list[dict[str, str]]:
        """The variables of each process of this machine: torchrun's."""
        options, first = self.options, sum(sizes[:node])
        common = {
            "WORLD_SIZE": sum(sizes), "ROLE_WORLD_SIZE": sum(sizes), "LOCAL_WORLD_SIZE": sizes[node],
            "GROUP_RANK": node, "GROUP_WORLD_SIZE": len(sizes), "ROLE_NAME": options.role,
            "MASTER_ADDR": options.host, "MASTER_PORT": self._served.port,
            "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": options.max_restarts,
            "TORCHELASTIC_RUN_ID": options.run_id, "TORCHELASTIC_USE_AGENT_STORE": True,
        }  # fmt: skip
        if sizes[node] > 1 and "OMP_NUM_THREADS" not in os.environ:
            common["OMP_NUM_THREADS"] = 1  # the processes are the parallelism
        return [
            {name: str(value) for name, value in common.items()}
            | {"LOCAL_RANK": str(local), "RANK": str(first + local), "ROLE_RANK": str(first + local)}
            for local in range(sizes[node])
        ]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let signals that end programs be exceptions, so that nothing is left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {}
    try:
        for number in _SIGNALS:
            before[number] = signal.signal(number, interrupt)
    except ValueError:  # not in the main thread: whoever called takes care of signals
        before.clear()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def say(text: str) -> None:
    """Print a message to the user."""
    sys.stderr.write(f"flambeau launch: {text}\n")
    sys.stderr.flush()


def launch(options: Options) -> int:
    """Run a program; the exit code of the launcher."""
    if options.ray:
        from .ray import launch_on_ray

        return launch_on_ray(options)
    try:
        failures = Agent(options).run()
    except Interrupted as interruption:
        say(f"ended by {signal.Signals(interruption.number).name}, and all processes with it")
        return 128 + interruption.number
    return say_failures(failures)


def say_failures(failures: list[Failure]) -> int:
    """Tell which processes failed; the exit code of the launcher."""
    if not failures:
        return 0
    say("the program failed. First, and most likely the cause:\n  " + str(failures[0]))
    for failure in failures[1:]:
        say(f"then {failure}")
    return 1
