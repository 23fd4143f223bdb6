"""The engine over NCCL on the simulated device: `python -m tests.distributed.nccl_program SIZE`."""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed._nccl.engine import NcclEngine
from flambeau.distributed.testing import run_in_threads
from tests.distributed.offload_checks import check_memory, check_offload
from tests.distributed.simulated_nccl import SimulatedNccl
from tests.support.simulated_cuda import install_simulated_device


def check(rank: int, size: int, place: Any = "cuda") -> None:
    """Every collective on a device, beside what it must give."""

    def own(*shape: int) -> Any:
        return (flambeau.arange(float(flambeau.Size(shape).numel())).reshape(shape) + 10 * rank).to(place)

    def same(found: Any, expected: Any) -> None:
        assert found.device.type == place, found.device
        assert found.tolist() == flambeau.as_tensor(expected).tolist(), (found, expected)

    everyone = range(size)
    rows = [flambeau.arange(3.0) + 10 * other for other in everyone]
    total = sum(rows[1:], rows[0])
    x = own(3)
    assert dist.all_reduce(x) is None
    same(x, total)
    x = own(3)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    same(x, total / size)
    x = own(2, 3).t()  # not in one piece
    dist.all_reduce(x, dist.ReduceOp.MAX)
    same(x, (flambeau.arange(6.0).reshape(2, 3) + 10 * (size - 1)).t())
    x = own(3)
    dist.reduce(x, size - 1)
    if rank == size - 1:
        same(x, total)
    x = own(3)
    dist.broadcast(x, size - 1)
    same(x, rows[-1])
    outs = [flambeau.empty(3, device=place) for _ in everyone]
    dist.all_gather(outs, own(3))
    same(flambeau.stack(outs), flambeau.stack(rows))
    whole = flambeau.empty(3 * size, device=place)
    dist.all_gather_into_tensor(whole, own(3))
    same(whole, flambeau.cat(rows))
    part = flambeau.empty(3, device=place)
    dist.reduce_scatter_tensor(part, own(3 * size))
    same(part, sum(flambeau.arange(3.0) + 3 * rank + 10 * other for other in everyone))
    dist.reduce_scatter(part, [own(3) * (n + 1) for n in everyone])
    same(part, total * (rank + 1))
    gathered = [flambeau.empty(3, device=place) for _ in everyone] if rank == 0 else None
    dist.gather(own(3), gathered, 0)
    if gathered is not None:
        same(flambeau.stack(gathered), flambeau.stack(rows))
    dist.scatter(part, [own(3) + n for n in everyone] if rank == 0 else None, 0)
    same(part, rows[0] + rank)
    dist.all_to_all(outs, [own(3) + n for n in everyone])
    same(flambeau.stack(outs), flambeau.stack([row + rank for row in rows]))
    if size > 1:
        work = dist.isend(own(3), (rank + 1) % size)
        dist.recv(part, (rank - 1) % size)
        work.wait()
        same(part, rows[(rank - 1) % size])
    work = dist.all_reduce(x := own(3), async_op=True)
    same(work.get_future().wait()[0], total)
    names: list[Any] = [None] * size
    dist.all_gather_object(names, f"rank {rank}")
    assert names == [f"rank {other}" for other in everyone]
    dist.barrier()
    with pytest.raises(RuntimeError, match="NCCL"):
        dist.all_reduce(flambeau.ones(2, dtype=flambeau.int32, device=place), dist.ReduceOp.BAND)


def check_training(rank: int, size: int, place: Any = "cuda") -> None:
    """Steps of a model on a device beside the mean of all gradients."""
    model, expected = flambeau.nn.Linear(4, 3).to(place), flambeau.nn.Linear(4, 3)
    wrapped = flambeau.nn.parallel.DistributedDataParallel(model)
    expected.load_state_dict(model.state_dict())
    inputs = [flambeau.arange(8.0).reshape(2, 4) + other for other in range(size)]
    wrapped(inputs[rank].to(place)).pow(2).mean().backward()
    sum((expected(each).pow(2).mean() for each in inputs), flambeau.zeros(())).div(size).backward()
    for own, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert own.grad is not None
        flambeau.testing.assert_close(own.grad.cpu(), other.grad)


def main(size: int) -> None:
    """All ranks as threads, each with an engine over the simulated library."""
    install_simulated_device()
    library: Any = SimulatedNccl(size)

    def ranks(number: int, library: Any, *checks: Callable[[int, int], None]) -> None:
        def work(rank: int) -> None:
            group = dist.group.WORLD
            assert group is not None
            group._engine = NcclEngine(group._engine, library, 0)
            for each in checks:
                each(rank, number)

        run_in_threads(work, number)

    ranks(size, library, check, check_training)
    with tempfile.TemporaryDirectory() as folder:
        ranks(2, SimulatedNccl(2), functools.partial(check_offload, folder=Path(folder)))
    ranks(1, SimulatedNccl(1), check_memory)
    wanted = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "Send", "Recv", "CommDestroy"}
    assert wanted <= set(library.calls), set(library.calls)


if __name__ == "__main__":
    main(int(sys.argv[1]))
