"""PyTorch's ranks: `python -m tests.distributed.oracle MODULE FOLDER SIZE...` writes what each rank of Gloo found.

One process imports PyTorch and forks a child for each rank of each group, which is quicker than as many imports.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LONGEST = 240


@contextmanager
def gloo(module: str, *sizes: int) -> Iterator[Any]:
    """Start PyTorch's ranks, a group of each size after the other; what is yielded waits for the groups, and gives what
    each rank of the group of a size found, by scenario.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.distributed.oracle", module, folder, *map(str, sizes)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

        def results(size: int) -> list[dict[str, Any]]:
            files = [Path(folder) / f"{rank}-of-{size}.pickle" for rank in range(size)]
            if process.returncode is None:
                output, _ = process.communicate(timeout=LONGEST)
                assert process.returncode == 0, output[-4000:]
            return [pickle.loads(file.read_bytes()) for file in files]

        try:
            yield results
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _rank(module: Any, rank: int, size: int, folder: Path) -> None:
    import torch
    import torch.distributed

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    where = f"file://{folder / f'meeting-of-{size}'}"
    torch.distributed.init_process_group("gloo", where, timedelta(seconds=LONGEST), size, rank)
    found = dict(module.run_all(torch, rank, size))
    (folder / f"{rank}-of-{size}.pickle").write_bytes(pickle.dumps(found))
    torch.distributed.destroy_process_group()


def _group(module: Any, size: int, folder: Path) -> int:
    """Fork the ranks of a group, and wait for them."""
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            try:
                _rank(module, rank, size, folder)
                os._exit(0)
            except BaseException as error:
                sys.stderr.write(f"rank {rank}: {type(error).__name__}: {error}\n")
                sys.stderr.flush()
                os._exit(1)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def main() -> int:
    import torch.distributed  # noqa: F401  (before the forks: once for all ranks)

    module, folder = importlib.import_module(sys.argv[1]), Path(sys.argv[2])
    for name in getattr(module, "PYTORCH_IMPORTS", ()):
        importlib.import_module(name)
    return next(filter(None, (_group(module, int(size), folder) for size in sys.argv[3:])), 0)


if __name__ == "__main__":
    sys.exit(main())
