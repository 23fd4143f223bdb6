"""Kills a process in the middle of saving, again and again; the file must load every time.

python -m tests.serialization.killing --times 200
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import flambeau
import flambeau.nn  # what the first save of a process would import
import flambeau.serialization

CONTEXT: Any = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
CONTEXT.set_forkserver_preload([__name__])  # so that the imports are made once for all processes


def _save_on(path: Path, number: int, told: Any) -> None:
    """Save again and again, and tell when a save is finished."""
    while True:
        number += 1
        flambeau.save({"number": number, "weight": flambeau.full((200_000,), float(number))}, path)
        told.send_bytes(number.to_bytes(8, "little"))


def _told(connection: Any) -> int:
    """The last number that a process told before it was killed."""
    number = 0
    try:
        while True:
            number = int.from_bytes(connection.recv_bytes(), "little")
    except EOFError:
        return number


def kill_while_saving(folder: Path, times: int, seed: int = 0) -> list[int]:
    """The number of the save that each killed process left behind; raises if a file is not whole."""
    chance = random.Random(seed)
    path = folder / "model.pt"
    flambeau.save({"number": 0, "weight": flambeau.zeros(200_000)}, path)
    numbers = [0]
    for _ in range(times):
        receiving, sending = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_save_on, args=(path, numbers[-1], sending))
        process.start()
        sending.close()
        receiving.poll(None)
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        process.join()
        told = _told(receiving)
        receiving.close()
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
