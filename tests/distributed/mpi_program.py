"""What `mpiexec` runs: collectives over MPI, with their results asserted."""

from __future__ import annotations

import flambeau
import flambeau.distributed as dist


def main() -> None:
    dist.init_process_group("mpi")
    assert dist.is_mpi_available()
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (dist.get_backend(), size) == ("mpi", 2)
    for dtype in (flambeau.float32, flambeau.float64, flambeau.int64, flambeau.bfloat16, flambeau.float16):
        x = flambeau.arange(5).to(dtype) + rank
        dist.all_reduce(x)
        assert x.tolist() == [1, 3, 5, 7, 9], (dtype, x)
    x = flambeau.full((3,), float(rank))
    dist.broadcast(x, 1)
    assert x.tolist() == [1, 1, 1]
    gathered = [flambeau.zeros(2) for _ in range(size)]
    dist.all_gather(gathered, flambeau.full((2,), float(rank)))
    assert [each.tolist() for each in gathered] == [[0, 0], [1, 1]]
    part = flambeau.zeros(2)
    dist.reduce_scatter(part, [flambeau.full((2,), float(each + rank)) for each in range(size)])
    assert part.tolist() == [2 * rank + 1] * 2
    work = dist.all_reduce(part, dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert part.tolist() == [2, 2]
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    if rank == 0:
        dist.send(flambeau.ones(2), 1, tag=4)
    else:
        received = flambeau.zeros(2)
        assert dist.recv(received, tag=4) == 0
        assert received.tolist() == [1, 1]
    alone = dist.new_group([1])
    if rank == 1:
        dist.all_reduce(x, group=alone)
        assert x.tolist() == [1, 1, 1]
    model = flambeau.nn.parallel.DistributedDataParallel(flambeau.nn.Linear(2, 1))
    model(flambeau.full((1, 2), float(rank))).sum().backward()
    assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} is done", flush=True)


if __name__ == "__main__":
    main()
