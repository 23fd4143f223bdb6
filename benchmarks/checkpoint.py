"""Saving and loading a state dict of a gigabyte, Flambeau against PyTorch: seconds and memory, in turns.

Every measurement is a new process, so that none profits from memory that another one touched. Flambeau's save forces
the file to the disk; PyTorch's does not, so its time is given without and with an fsync behind it. Flambeau writes
large files past the system's cache, PyTorch through it: both load what a save has left, and files in the cache.

    python benchmarks/checkpoint.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import _measure

ACTIONS = {
    "save": "torch.save(state, path)",
    "save and fsync": "torch.save(state, path); fsync(path)",
    "load after save": "read = torch.load(path)",
    "load": "read = torch.load(path)",
    "load, mmap": "read = torch.load(path, mmap=True)",
}
SAVES = ("save", "save and fsync")
FROM_CACHE = ("load", "load, mmap")

PROGRAM = """
import io, json, os, resource, sys, time
sys.path.append({checkout!r})
import {name} as torch

path, tensors = {path!r}, {tensors}

def fsync(path):
    descriptor = os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)

def state_dict():
    return {{f"layer{{index}}.weight": torch.full((1 << 20, 4), float(index)) for index in range(tensors)}}

small = io.BytesIO()  # a first save and load, for what they import
torch.save(torch.nn.Parameter(torch.ones(1)), small)
small.seek(0)
torch.load(small)
state = state_dict() if {saves} else None
if {from_cache}:
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
{action}
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if not {saves}:
    assert [each[-1, -1].item() for each in read.values()] == list(range(tensors))
print(json.dumps([seconds, (peak - before) / 1024]))
"""


def run_fresh(name: str, action: str, path: Path, tensors: int) -> tuple[float, float]:
    """Seconds of one action in a new process, and by how many megabytes it raised the peak of memory."""
    program = PROGRAM.format(
        checkout=str(_measure.CHECKOUT),
        name=name,
        path=str(path),
        tensors=tensors,
        saves=action in SAVES,
        from_cache=action in FROM_CACHE,
        action=ACTIONS[action],
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, megabytes = json.loads(process.stdout)
    return seconds, megabytes


def main() -> int:
    """Measure the chosen actions; the exit status does not depend on a time."""
    parser = _measure.parser("Checkpoints, Flambeau against PyTorch.", "only actions whose name matches")
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary folder")
    options = parser.parse_args()
    rounds, tensors = (3, 16) if options.quick else (5, 64)
    actions = [action for action in ACTIONS if options.only.search(action)]
    taken: dict[str, dict[str, list[float]]] = {
        action: {name: [] for name in _measure.FRAMEWORKS} for action in actions
    }
    memory: dict[str, dict[str, float]] = {action: {} for action in actions}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in _measure.FRAMEWORKS:
            run_fresh(name, "save", Path(folder, name), tensors)
        for _ in range(rounds):
            for action in actions:
                for name in _measure.FRAMEWORKS:
                    if action == "load after save" and not set(SAVES) & set(actions):
                        run_fresh(name, "save", Path(folder, name), tensors)
                    # Flambeau's save always forces the file to the disk: a second time would be counted twice.
                    real = "save" if name == "flambeau" and action in SAVES else action
                    seconds, memory[action][name] = run_fresh(name, real, Path(folder, name), tensors)
                    taken[action][name].append(seconds)

    print(f"{tensors} tensors of 16 MiB; median of {rounds} processes each")
    print(f"{'action':<16}{'Flambeau s':>12}{'PyTorch s':>12}{'ratio':>8}{'Flambeau MB':>13}{'PyTorch MB':>12}")
    ratios = {}
    for action in actions:
        ours, theirs = (statistics.median(taken[action][name]) for name in _measure.FRAMEWORKS)
        ratios[action] = ours / theirs
        numbers = f"{ours:>12.4f}{theirs:>12.4f}{ratios[action]:>8.2f}"
        print(f"{action:<16}{numbers}{memory[action]['flambeau']:>13.0f}{memory[action]['torch']:>12.0f}")
    _measure.print_summary(ratios, "at most 1.0")
    _measure.write_json(options.json, {"seconds": taken, "megabytes": memory})
    return 0


if __name__ == "__main__":
    sys.exit(main())
