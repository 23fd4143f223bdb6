"""Programs with several processes, for systems that start them by spawn: each returns what every system must return.

`python -m tests.support.process_programs` runs them and prints their results as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import flambeau as torch
import flambeau.distributed as dist
import flambeau.multiprocessing as mp
from flambeau.utils.data import DataLoader, Dataset

PATIENCE = 300


class Squares(Dataset[Any]):
    """Numbers and their squares, as tensors."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([index, index * index])


def loader() -> Any:
    """Two worker processes."""
    batches = DataLoader(Squares(), 4, num_workers=2, timeout=PATIENCE, multiprocessing_context="spawn")
    return [batch.tolist() for batch in batches]


def _double(incoming: Any, outgoing: Any) -> None:
    tensor = incoming.get(timeout=PATIENCE)
    tensor.mul_(2)
    outgoing.put(tensor.sum().item())


def queue() -> Any:
    """A tensor that another process changes."""
    context = mp.get_context("spawn")
    incoming, outgoing = context.Queue(), context.Queue()
    process = context.Process(target=_double, args=(incoming, outgoing))
    process.start()
    tensor = torch.arange(5.0)
    incoming.put(tensor)
    total = outgoing.get(timeout=PATIENCE)
    process.join(PATIENCE)
    return [tensor.tolist(), total, tensor.is_shared(), process.exitcode]


def _take_part(rank: int, method: str, folder: str) -> None:
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
    tensor = torch.full((3,), float(rank + 1))
    dist.all_reduce(tensor)
    gathered: list[Any] = [None, None]
    dist.all_gather_object(gathered, {"rank": rank})
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        model.module.weight.fill_(1.0)
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    found = [tensor.tolist(), gathered, model.module.weight.grad.tolist()]
    Path(folder, f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    dist.destroy_process_group()


def _group(method: str, folder: str) -> Any:
    mp.spawn(_take_part, args=(method, folder), nprocs=2)
    return [json.loads(Path(folder, f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def file_store() -> Any:
    """Two processes that meet at a file, in a folder whose name has spaces and letters of other alphabets."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "with spaces, \u00fcml\u00e4ute and \u6f22\u5b57")
        folder.mkdir()
        return _group((folder / "store").as_uri(), str(folder))


def tcp_store() -> Any:
    """Two processes that meet at a port."""
    with tempfile.TemporaryDirectory() as folder:
        server = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
        port = server.port
        server.close()
        return _group(f"tcp://127.0.0.1:{port}", folder)


_LAUNCHED = """
import os, sys
import flambeau as torch
import flambeau.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(x)
with open(os.path.join(sys.argv[1], os.environ["RANK"]), "w") as file:
    file.write(f"{os.environ['LOCAL_RANK']} {x.tolist()}")
dist.destroy_process_group()
"""


def launch() -> Any:
    """`flambeau launch` with two processes."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(_LAUNCHED, encoding="utf-8")
        command = [sys.executable, "-m", "flambeau", "launch", "--standalone", "--nproc-per-node", "2", str(program)]
        run = subprocess.run([*command, folder], capture_output=True, text=True, check=False, timeout=PATIENCE)
        if run.returncode:
            return [run.returncode, run.stdout[-500:], run.stderr[-1500:]]
        return [Path(folder, str(rank)).read_text(encoding="utf-8") for rank in range(2)]


_AVERAGED = [[[1.5, 1.5]], [[1.5, 1.5]]]
_MET = [[[3.0] * 3, [{"rank": 0}, {"rank": 1}], _AVERAGED[rank]] for rank in range(2)]
EXPECTED: dict[str, Any] = {
    "loader": [[[n, n * n] for n in range(start, min(start + 4, 10))] for start in (0, 4, 8)],
    "queue": [[0.0, 2.0, 4.0, 6.0, 8.0], 20.0, True, 0],
    "file_store": _MET,
    "tcp_store": _MET,
    "launch": ["0 [3.0, 3.0]", "1 [3.0, 3.0]"],
}
"""What each of them returns."""


def main(names: list[str]) -> None:
    """Run some of them, or all."""
    for name in names or EXPECTED:
        print(json.dumps([name, globals()[name]()]), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("FLAMBEAU_ONEDNN", "0")
    main(sys.argv[1:])
