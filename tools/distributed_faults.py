"""Faults between processes: `python tools/distributed_faults.py --count 100` disturbs groups and looks what others say.

killed, stopped, raises: three processes exchange tensors without end. At a random moment one of them is killed, is
stopped, or raises an error. The others must end within the timeout, each with an error that names that rank, and leave
no shared memory behind.

cut: two processes write checkpoints; at a random moment both are killed. What is read afterwards is one of those that
were written, whole.

restarts: training under `flambeau launch --max-restarts`; four times one of its processes is killed at a random moment,
and each counts. It ends with the bits of an undisturbed run, and no process is left.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import flambeau
import flambeau.distributed as dist
from flambeau.distributed import checkpoint

SIZE = 3
TIMEOUT = 3.0
"""Seconds after which a collective gives up."""
GRACE = 20.0
"""Seconds more that a busy machine may take."""
PROGRESS = 10
"""Faults between two lines of progress."""
SHARED = Path("/dev/shm")
KILLS = 4
"""Of one training that starts again each time."""
kills: Counter[str] = Counter()


def exchange(rank: int, folder: Path) -> None:
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
        if (folder / f"raise{rank}").exists():
            raise ValueError("on purpose")


def rank_process(work: Callable[[int, Path], None], rank: int, folder: Path) -> int:
    """Run a rank in a process of its own; its number."""
    child = os.fork()
    if child:
        return child
    try:
        work(rank, folder)
    except BaseException as error:
        (folder / f"said{rank}.part").write_text(f"{type(error).__name__}: {error}")
        (folder / f"said{rank}.part").rename(folder / f"said{rank}")
    finally:
        os._exit(1)


def disturbed(kind: str, numbers: random.Random) -> str | None:
    """Disturb one group; what went wrong, None if all was as it must be."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared = set(SHARED.glob("*"))
        children = [rank_process(exchange, rank, folder) for rank in range(SIZE)]
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
            _end(children)
        left = [each.name for each in set(SHARED.glob("*")) - shared if "flambeau" in each.name]
    return f"shared memory is left behind: {left}" if left else None


def _end(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def write_checkpoints(rank: int, folder: Path) -> None:
    """Checkpoints without end: all tensors of the n-th are filled with n."""
    dist.init_process_group("gloo", f"file://{folder}/meeting", timedelta(seconds=60), 2, rank)
    for number in itertools.count():
        state = {f"part{part}": flambeau.full((30_000,), float(number)) for part in range(4)}
        checkpoint.save(state, checkpoint_id=folder / "checkpoint")
        (folder / f"ready{rank}").touch()


def cut(numbers: random.Random) -> str | None:
    """Kill processes that write checkpoints, and read; what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        children = [rank_process(write_checkpoints, rank, folder) for rank in range(2)]
        try:
            if not _until(lambda: all((folder / f"ready{rank}").exists() for rank in range(2)), 60):
                return "nothing was written"
            time.sleep(numbers.random() * 0.3)
        finally:
            _end(children)
        state = {f"part{part}": flambeau.zeros(30_000) for part in range(4)}
        try:
            checkpoint.load(state, checkpoint_id=folder / "checkpoint")
        except Exception as error:
            return f"it cannot be read: {type(error).__name__}: {error}"
        values = {float(value) for part in state.values() for value in part.unique()}
        return None if len(values) == 1 else f"parts of several checkpoints: {sorted(values)}"


TRAINING = """
import os
from datetime import timedelta
import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=20))
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 100))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
start = 0
if os.path.exists("checkpoint.pt"):
    start, state, moments = torch.load("checkpoint.pt")
    model.load_state_dict(state)
    optimizer.load_state_dict(moments)
open(f"pid{dist.get_rank()}", "w").write(str(os.getpid()))
for step in range(start, 150):
    x = torch.randn(8, 200, generator=torch.Generator().manual_seed(2 * step + dist.get_rank()))
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    if dist.get_rank() == 0:
        torch.save((step + 1, model.state_dict(), optimizer.state_dict()), "checkpoint.part")
        os.replace("checkpoint.part", "checkpoint.pt")
torch.save(model.state_dict(), f"end{dist.get_rank()}.pt")
dist.destroy_process_group()
"""


def trained(folder: Path, disturb: Callable[[subprocess.Popen[bytes]], None]) -> tuple[int, list[bytes]]:
    """Train in a folder; how the launcher ended, and the parameters of each rank."""
    (folder / "program.py").write_text(TRAINING)
    command = [sys.executable, "-m", "flambeau", "launch", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", str(KILLS), "--monitor-interval", "0.02", "program.py"]
    launcher = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    disturb(launcher)
    launcher.communicate(timeout=120)
    ends = [flambeau.load(folder / f"end{rank}.pt") for rank in range(2) if (folder / f"end{rank}.pt").exists()]
    return launcher.returncode, [b"".join(each.numpy().tobytes() for each in end.values()) for end in ends]


@functools.cache
def undisturbed(kept: Path | None) -> bytes:
    """The parameters at the end of training, which may be in a file already."""
    if kept is not None and kept.exists():
        return kept.read_bytes()
    with tempfile.TemporaryDirectory() as name:
        found = trained(Path(name), lambda launcher: None)[1][0]
    if kept is not None:
        kept.write_bytes(found)
    return found


def restarts(kept: Path | None, numbers: random.Random) -> str | None:
    """Kill processes of a training, one after the other; what went wrong."""
    expected = undisturbed(kept)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def disturb(launcher: subprocess.Popen[bytes]) -> None:
            seen: set[str] = {""}
            for _ in range(KILLS):
                file = folder / f"pid{numbers.randrange(2)}"
                if not _until(functools.partial(_is_new_or_over, file, seen, launcher), 60):
                    return
                victim = _text(file)
                time.sleep(numbers.random() * 0.3)
                if launcher.poll() is not None:
                    return
                with contextlib.suppress(ProcessLookupError):  # it may have come to its end
                    os.kill(int(victim), signal.SIGKILL)
                    kills["restarts"] += 1
                seen |= {_text(folder / f"pid{rank}") for rank in range(2)}

        status, ends = trained(folder, disturb)
        if status:
            return f"the launcher ended with {status}"
        if ends != [expected] * 2:
            return "the parameters are others than those of an undisturbed run"
        alive = [rank for rank in range(2) if _is_alive(int((folder / f"pid{rank}").read_text()))]
        return f"rank {alive} still runs" if alive else None


def _is_new_or_over(file: Path, seen: set[str], launcher: subprocess.Popen[bytes]) -> bool:
    return launcher.poll() is not None or _text(file) not in seen


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


KINDS: dict[str, Callable[[random.Random], str | None]] = {
    **{kind: functools.partial(disturbed, kind) for kind in ("killed", "stopped", "raises")},
    "cut": cut,
    "restarts": functools.partial(restarts, None),
}


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
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--undisturbed", type=Path, help="a file that keeps the end of training for further runs")
    options = parser.parse_args()
    KINDS["restarts"] = functools.partial(restarts, options.undisturbed)
    numbers = random.Random(options.seed)
    failures = 0
    for kind in options.kinds:
        wrong: list[str] = []
        for done in range(1, options.count + 1):
            found = KINDS[kind](numbers)
            if found is not None:
                wrong.append(found)
                print(f"  {found}", flush=True)
            if done % PROGRESS == 0 or done == options.count:
                killed = f", {kills[kind]} kills" if kills[kind] else ""
                print(f"{kind}: {done - len(wrong)} of {done} as they must be{killed}", flush=True)
        failures += len(wrong)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
