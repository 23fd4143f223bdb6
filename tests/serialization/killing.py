"""Kills a process in the middle of saving, again and again; the file must load every time.

python -m tests.serialization.killing --times 200
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flambeau

_WRITER = """
import sys
import flambeau
number = int(sys.argv[2])
while True:
    number += 1
    flambeau.save({"number": number, "weight": flambeau.full((200_000,), float(number))}, sys.argv[1])
    print(number, flush=True)
"""


def kill_while_saving(folder: Path, times: int, seed: int = 0) -> list[int]:
    """The number of the save that each killed process left behind; raises if a file is not whole."""
    chance = random.Random(seed)
    path = folder / "model.pt"
    flambeau.save({"number": 0, "weight": flambeau.zeros(200_000)}, path)
    numbers = [0]
    root = Path(__file__).parents[2]
    for _ in range(times):
        command = [sys.executable, "-c", _WRITER, str(path), str(numbers[-1])]
        process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        rest = process.stdout.read()
        process.wait()
        process.stdout.close()
        told = int((first + rest).split()[-1])
        read = flambeau.load(path)
        number = read["number"]
        if number not in (told, told + 1) or read["weight"].unique().tolist() != [float(number)]:
            raise AssertionError(f"save {told} was finished, the file has {number} and {read['weight']}")
        numbers.append(number)
    return numbers


def leftovers(folder: Path) -> list[Path]:
    """The unfinished files of killed processes."""
    return list(folder.glob(".model.pt.*"))


def main() -> None:
    """Kill from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        numbers = kill_while_saving(Path(folder), options.times, options.seed)
        print(f"{options.times} processes killed after {numbers[-1]} saves: the file loaded every time")


if __name__ == "__main__":
    main()
