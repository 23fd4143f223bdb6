"""Faults between processes: `python tools/distributed_faults.py --count 100` disturbs groups and looks what others say.

Three processes exchange tensors without end. At a random moment one of them is killed, is stopped, or raises an error.
The others must end within the timeout, each with an error that names that rank, and leave nothing behind.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import flambeau
import flambeau.distributed as dist

SIZE = 3
TIMEOUT = 3.0
"""Seconds after which a collective gives up."""
GRACE = 20.0
"""Seconds more that a busy machine may take."""
KINDS = ("killed", "stopped", "raises")


def exchange(rank: int, folder: Path, raising: Callable[[], bool]) -> None:
    """Collectives of all kinds and sizes, without end."""
    timeout = timedelta(seconds=TIMEOUT)
    dist.init_process_group("gloo", f"file://{folder}/meeting", timedelta(seconds=60), SIZE, rank)
    group = dist.new_group(timeout=timeout)
    (folder / f"ready{rank}").touch()
    numbers = random.Random(5)
    while True:
        x = flambeau.ones(numbers.choice((1, 1000, 100_000, 400_000)))
        kind = numbers.randrange(5)
        if kind == 0:
            dist.all_reduce(x, group=group)
        elif kind == 1:
            dist.broadcast(x, numbers.randrange(SIZE), group=group)
        elif kind == 2:
            dist.all_gather([flambeau.empty_like(x) for _ in range(SIZE)], x, group=group)
        elif kind == 3:
            dist.all_reduce(x, group=group, async_op=True).wait()
        else:
            dist.barrier(group)
        if raising():
            raise ValueError("on purpose")


def rank_process(rank: int, folder: Path) -> int:
    """Run a rank in a process of its own; its number."""
    child = os.fork()
    if child:
        return child
    try:
        exchange(rank, folder, lambda: (folder / f"raise{rank}").exists())
    except BaseException as error:
        (folder / f"said{rank}.part").write_text(f"{type(error).__name__}: {error}")
        (folder / f"said{rank}.part").rename(folder / f"said{rank}")
    finally:
        os._exit(1)


def disturbed(kind: str, numbers: random.Random) -> str | None:
    """Disturb one group; what went wrong, None if all was as it must be."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        children = [rank_process(rank, folder) for rank in range(SIZE)]
        victim = numbers.randrange(SIZE)
        try:
            if not _until(lambda: all((folder / f"ready{rank}").exists() for rank in range(SIZE)), 60):
                return "the group did not start"
            time.sleep(numbers.random() * 0.3)
            if kind == "raises":
                (folder / f"raise{victim}").touch()
            else:
                os.kill(children[victim], signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
            others = [rank for rank in range(SIZE) if rank != victim]
            if not _until(lambda: all((folder / f"said{rank}").exists() for rank in others), TIMEOUT + GRACE):
                silent = [rank for rank in others if not (folder / f"said{rank}").exists()]
                return f"rank {silent} said nothing after rank {victim} was {kind}"
            for rank in others:
                said = (folder / f"said{rank}").read_text()
                if not re.search(rf"\brank {victim}\b", said):
                    return f"rank {victim} was {kind}, and rank {rank} said: {said}"
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    return None


def _until(condition: Callable[[], bool], limit: float) -> bool:
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def main() -> int:
    """Disturb groups, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="faults of each kind")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    options = parser.parse_args()
    numbers = random.Random(0)
    failures = 0
    for kind in options.kinds:
        wrong = [found for found in (disturbed(kind, numbers) for _ in range(options.count)) if found]
        failures += len(wrong)
        print(f"{kind}: {options.count - len(wrong)} of {options.count} as they must be")
        for each in wrong[:5]:
            print(f"  {each}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
