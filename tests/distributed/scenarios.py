"""What ranks do under both libraries: functions of the library, the rank and the number of ranks.

PyTorch's ranks are processes with Gloo (`oracle.py`), Flambeau's are threads of the test with its own engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

Scenario = Callable[[Any, int, int], Any]

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "int8", "bfloat16", "float16")
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (3, 4), (0,), (40_000,))


def seeded(torch: Any, shape: tuple[int, ...], dtype: Any, rank: int, salt: int = 0) -> Any:
    generator = torch.Generator().manual_seed(1000 * rank + salt)
    values = torch.randint(-9 if dtype.is_signed else 0, 10, shape, generator=generator)
    return values.to(dtype) / 8 if dtype.is_floating_point else values.to(dtype)


def reductions(torch: Any, rank: int, size: int) -> Any:
    """Every reduction of every dtype; sums of eighths are exact, so that the order of processes does not show."""
    dist, found = torch.distributed, {}
    for name in DTYPES:
        dtype = getattr(torch, name)
        ops = ["SUM", "PRODUCT", "MIN", "MAX", *(["AVG"] if dtype.is_floating_point else ["BAND", "BOR", "BXOR"])]
        for op in ops:
            for salt, shape in enumerate(SHAPES if op == "SUM" else SHAPES[2:4]):
                x = seeded(torch, shape, dtype, rank, salt)
                dist.all_reduce(x, getattr(dist.ReduceOp, op))
                found[f"all_reduce {name} {op} {shape}"] = x
    for dst in range(size):
        x = seeded(torch, (7,), torch.float64, rank, dst)
        dist.reduce(x, dst)
        found[f"reduce to {dst}"] = x if rank == dst else None  # PyTorch leaves what it likes on the others
    return found


def moves(torch: Any, rank: int, size: int) -> Any:
    """Collectives that only move elements."""
    dist, found = torch.distributed, {}
    for name in (*DTYPES, "bool", "complex64"):
        dtype = getattr(torch, name)
        for salt, shape in enumerate(SHAPES):
            x = (
                seeded(torch, shape, dtype, rank, salt)
                if name != "bool"
                else seeded(torch, shape, torch.int32, rank) > 0
            )
            gathered = [torch.zeros(shape, dtype=dtype) for _ in range(size)]
            dist.all_gather(gathered, x)
            found[f"all_gather {name} {shape}"] = gathered
            y = x.clone()
            dist.broadcast(y, size - 1)
            found[f"broadcast {name} {shape}"] = y
    x = seeded(torch, (6,), torch.float32, rank)
    whole = torch.zeros(6 * size)
    dist.all_gather_into_tensor(whole, x)
    found["all_gather_into_tensor"] = whole
    outs = [torch.zeros(6) for _ in range(size)] if rank == 1 else None
    dist.gather(x, outs, dst=1)
    found["gather"] = outs
    y = torch.zeros(6)
    dist.scatter(y, [x + each for each in range(size)] if rank == 0 else None, src=0)
    found["scatter"] = y
    dist.reduce_scatter(y, [x * each for each in range(size)])
    found["reduce_scatter"] = y.clone()
    dist.reduce_scatter_tensor(y, torch.cat([x - each for each in range(size)]))
    found["reduce_scatter_tensor"] = y
    z = torch.zeros(size, 3)
    dist.all_to_all_single(z, seeded(torch, (size, 3), torch.float32, rank, 5))
    found["all_to_all_single"] = z
    uneven = torch.zeros(sum(each + rank + 1 for each in range(size)))
    given = torch.arange(float(sum(each + rank + 1 for each in range(size)))) + 100 * rank
    sizes = [each + rank + 1 for each in range(size)]
    dist.all_to_all_single(uneven, given, sizes, sizes)
    found["uneven all_to_all_single"] = uneven
    transposed = seeded(torch, (3, 4), torch.float32, rank).t()
    dist.all_reduce(transposed)
    found["transposed"] = transposed
    return found


def messages(torch: Any, rank: int, size: int) -> Any:
    """From one process to another; in the background; in groups."""
    dist, found = torch.distributed, {}
    following, before = (rank + 1) % size, (rank - 1) % size
    x, y = torch.full((5,), float(rank)), torch.zeros(5)
    works = [dist.isend(x, following, tag=3), dist.irecv(y, before, tag=3)]
    found["ring"] = ([work.wait() for work in works], y.clone())
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, following), dist.P2POp(dist.irecv, y, before)])
    for work in works:
        work.wait()
    found["batch"] = y.clone()
    if rank == 0:
        found["from anyone"] = [dist.recv(torch.zeros(2)) for _ in range(size - 1)] and sorted(range(1, size))
    else:
        dist.send(torch.ones(2), 0)
    work = dist.all_reduce(x, async_op=True)
    found["asynchronous"] = (work.wait(), work.is_completed(), x.clone(), work.get_future().wait())
    pair = dist.new_group([0, 1])
    found["in the pair"] = (dist.get_rank(pair), dist.get_world_size(pair))
    if rank < 2:
        z = torch.full((3,), float(rank + 1))
        dist.all_reduce(z, group=pair)
        found["pair"] = (z, dist.get_process_group_ranks(pair), dist.get_global_rank(pair, 1), dist.get_backend(pair))
    last = dist.new_group([size - 1, 0])
    if rank in (0, size - 1):
        z = torch.full((3,), float(rank + 1))
        dist.broadcast(z, size - 1, group=last)
        found["last"] = (z, dist.get_group_rank(last, size - 1))
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "x": [torch.full((2,), float(rank)), "text" * rank]})
    found["objects"] = objects
    shared: list[Any] = [1, "two", {"three": 3.0}] if rank == 0 else [None, None, None]
    dist.broadcast_object_list(shared, src=0)
    found["shared"] = shared
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [{"for": each} for each in range(size)] if rank == 0 else None, src=0)
    found["mine"] = mine
    collected = [None] * size if rank == 0 else None
    dist.gather_object(("of", rank), collected, dst=0)
    found["collected"] = collected
    dist.barrier()
    dist.monitored_barrier()
    return found


def calls_on_a_group(torch: Any, rank: int, size: int) -> Any:
    """The methods of a group, in both of their forms."""
    dist, found = torch.distributed, {}
    group = dist.group.WORLD
    dist.barrier()

    def values(salt: int) -> Any:
        return torch.arange(3.0) + 10 * rank + salt

    def done(work: Any, value: Any) -> Any:
        work.wait()
        return value

    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = dist.ReduceOp.MAX
    pair = [values(0), values(5)]
    found["allreduce_coalesced"] = done(group.allreduce_coalesced(pair, options), pair)
    rooted = dist.ReduceOptions()
    rooted.rootRank, rooted.reduceOp = 1, dist.ReduceOp.PRODUCT
    x = values(1)
    group.reduce([x], rooted).wait()
    found["reduce"] = x if rank == 1 else None
    outs = [torch.zeros(3) for _ in range(size)]
    gathering = dist.GatherOptions()
    gathering.rootRank = size - 1
    found["gather"] = done(group.gather([outs] if rank == size - 1 else [], [values(2)], gathering), outs)
    y = torch.zeros(3)
    given = [[values(each) for each in range(size)]] if rank == 0 else []
    found["scatter"] = done(group.scatter([y], given, dist.ScatterOptions()), y)
    z = torch.zeros(3)
    parts = [[values(each) for each in range(size)]]
    found["reduce_scatter"] = done(group.reduce_scatter([z], parts, dist.ReduceScatterOptions()), z)
    whole = torch.zeros(size)
    sent = torch.arange(float(size)) + 100 * rank
    found["alltoall_base"] = done(group.alltoall_base(whole, sent, [], []), whole)
    following, before = (rank + 1) % size, (rank - 1) % size
    arrived = torch.zeros(3)
    works = [group.send([values(7)], following, 4), group.recv([arrived], before, 4)]
    found["messages"] = [work.wait() for work in works] and arrived
    group.monitored_barrier()
    return found


def _error(action: Callable[[], Any]) -> str:
    try:
        return f"no error: {action()}"
    except Exception as error:
        return type(error).__name__


def wrong_calls(torch: Any, rank: int, size: int) -> Any:
    """Arguments that are refused before anything is sent."""
    dist, x = torch.distributed, torch.ones(2)
    tries = (
        lambda: dist.all_reduce(3),
        lambda: dist.all_reduce(x, dist.ReduceOp.BAND),
        lambda: dist.all_reduce(x + 0j, dist.ReduceOp.MAX),
        lambda: dist.all_gather([x], x),
        lambda: dist.all_gather([x] * (size - 1) + [torch.ones(3)], x),
        lambda: dist.all_gather([x.double()] * size, x),
        lambda: dist.broadcast(x, size + 3),
        lambda: dist.send(x, rank),
        lambda: dist.gather(x, [x] * size if rank else None, dst=0),
        lambda: dist.new_group([0, size]),
        lambda: dist.init_process_group("gloo", rank=rank, world_size=size),
        lambda: dist.all_to_all_single(torch.zeros(size), torch.zeros(size), [1], [1]),
        lambda: dist.P2POp(dist.all_reduce, x, 0),
    )
    return [_error(each) for each in tries]


SCENARIOS: tuple[Scenario, ...] = (reductions, moves, messages, calls_on_a_group, wrong_calls)


_SHOWN = 100


def _digest(value: Any) -> str:
    parts = (value.real, value.imag) if value.is_complex() else (value,)
    return hashlib.sha256(b"".join(part.double().numpy().tobytes() for part in parts)).hexdigest()


def plain(value: Any, shown: int = _SHOWN) -> Any:
    """What a scenario found, without either library's objects; of large tensors a digest."""
    if isinstance(value, dict):
        return {key: plain(each, shown) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, shown) for each in value]
    if hasattr(value, "detach"):
        content = value.detach().tolist() if value.numel() <= shown else _digest(value.detach())
        return str(value.dtype), tuple(value.shape), content
    return value


def run_all(torch: Any, rank: int, size: int) -> Iterator[tuple[str, Any]]:
    for scenario in SCENARIOS:
        yield scenario.__name__, plain(scenario(torch, rank, size))
