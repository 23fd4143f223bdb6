"""One workload in one framework in a process that lives on, and runs bursts of steps when it is told to.

The frameworks take turns, but each has a process of its own: threads that one leaves spinning, as those of linear
algebra libraries do for a while, would take the other's processor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import _measure

from .workloads import WORKLOADS


class Worker:
    """The process, seen from the benchmark."""

    def __init__(self, framework: str, workload: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "_train_steps.worker", framework, workload, str(threads)],
            cwd=_measure.BENCHMARKS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def _answer(self) -> float:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended with status {self.process.wait()}")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return float(answer)

    def _tell(self, *command: Any) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def step(self, result: Path) -> float:
        """Run one step, and save what it returned; the seconds."""
        return self._tell("step", str(result))

    def burst(self, calls: int) -> float:
        """The seconds of so many steps."""
        return self._tell("burst", calls)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def save(result: Any, path: str) -> None:
    """Write what a step returned as NumPy's arrays of float32."""
    import numpy as np

    tensors = result if isinstance(result, tuple) else (result,)
    np.savez(path, *[tensor.detach().float().numpy() for tensor in tensors])


def main() -> None:
    """Build, then obey the lines of the standard input."""
    name, workload, threads = sys.argv[1], WORKLOADS[sys.argv[2]], int(sys.argv[3])
    answers = sys.stdout
    sys.stdout = sys.stderr

    def answer(value: float | str) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        framework = _measure.load(name, threads)
        warnings.filterwarnings("ignore", "mkldnn_matmul failed")  # PyTorch's, on processors without bfloat16
        framework.manual_seed(0)
        step = workload.build(framework)
        answer(0.0)
        # The cycle collector stays on: it is part of what a step costs in a framework that is written in Python.
        for line in sys.stdin:
            command, argument = json.loads(line)
            if command == "burst":
                answer(_measure.burst(step, argument))
            else:
                begin = perf_counter()
                result = step()
                seconds = perf_counter() - begin
                save(result, argument)
                answer(seconds)
    except Exception as error:  # whatever goes wrong in one workload, the others are still measured
        answer(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
