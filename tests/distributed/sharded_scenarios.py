"""Training of models that are spread over ranks, under both libraries; see `scenarios.py`."""

from __future__ import annotations

import importlib
from typing import Any

STEPS = 4
WIDTH, CLASSES, ROWS = 6, 5, 8


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _values(torch: Any, shape: tuple[int, ...], salt: int) -> Any:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(salt))


def _layers(torch: Any) -> list[Any]:
    """Layers of which no size is a multiple of four."""
    nn = torch.nn
    layers = [nn.Linear(WIDTH, 7), nn.Tanh(), nn.Linear(7, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)]
    model = nn.Sequential(*layers).double()
    with torch.no_grad():
        for number, each in enumerate(model.parameters()):
            each.copy_(_values(torch, tuple(each.shape), number) * 0.5)
    return list(model)


def _batch(torch: Any, step: int, share: slice) -> tuple[Any, Any]:
    targets = torch.randint(0, CLASSES, (ROWS,), generator=torch.Generator().manual_seed(step))
    return _values(torch, (ROWS, WIDTH), 100 + step)[share], targets[share]


def _train(torch: Any, model: Any, share: slice, clip: Any = None) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    losses = []
    for step in range(STEPS):
        x, targets = _batch(torch, step, share)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), targets)
        loss.backward()
        if clip is not None:
            clip(0.3)
        optimizer.step()
        losses.append(loss.item())
    return losses


def _share(rank: int, size: int) -> slice:
    return slice(rank * ROWS // size, (rank + 1) * ROWS // size)


def _whole(model: Any) -> dict[str, Any]:
    return {
        name: (each.full_tensor() if hasattr(each, "full_tensor") else each).detach().clone()
        for name, each in model.named_parameters()
    }


def fully_sharded(torch: Any, rank: int, size: int) -> Any:
    fsdp, mesh = _module(torch, "fsdp"), _module(torch, "device_mesh").init_device_mesh("cpu", (size,))
    model = torch.nn.Sequential(*_layers(torch))
    # On a mesh of CPUs this policy changes nothing.
    options = {"offload_policy": fsdp.CPUOffloadPolicy(pin_memory=False)} if size == 4 else {}
    for layer in (model[0], model[2]):
        fsdp.fully_shard(layer, mesh=mesh, **options)
    fsdp.fully_shard(model, mesh=mesh, **options)
    losses = _train(
        torch, model, _share(rank, size), lambda norm: torch.nn.utils.clip_grad_norm_(model.parameters(), norm)
    )
    return losses, _whole(model), [each.to_local().detach().clone() for each in model.parameters()]


def older_fully_sharded(torch: Any, rank: int, size: int) -> Any:
    fsdp = _module(torch, "fsdp")
    model = torch.nn.Sequential(*_layers(torch))
    model[2] = fsdp.FullyShardedDataParallel(model[2], device_id=torch.device("cpu"), use_orig_params=True)
    model = fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
    losses = _train(torch, model, _share(rank, size))  # PyTorch's clip_grad_norm_ refuses double precision here
    with fsdp.FullyShardedDataParallel.summon_full_params(model):
        return losses, [each.detach().clone() for each in model.parameters()]


def older_with_hooks(torch: Any, rank: int, size: int) -> Any:
    """Gradients whose means others make: in the wrapper's own way, in twice the size, uncut."""
    fsdp, found = _module(torch, "fsdp"), []
    hooks = _module(torch, "algorithms._comm_hooks.default_hooks")
    group, distributed = torch.distributed.group.WORLD, torch.distributed

    def doubled(state: list[int], grad: Any, output: Any) -> None:
        state.append(1)
        distributed.reduce_scatter_tensor(output, grad)

    counted: list[int] = []
    for state, hook, strategy in (
        (hooks.DefaultState(group), hooks.reduce_scatter_hook, fsdp.ShardingStrategy.FULL_SHARD),
        (counted, doubled, fsdp.ShardingStrategy.SHARD_GRAD_OP),
        (hooks.DefaultState(group), hooks.allreduce_hook, fsdp.ShardingStrategy.NO_SHARD),
    ):
        options = {"device_id": torch.device("cpu"), "use_orig_params": True, "sharding_strategy": strategy}
        model = torch.nn.Sequential(*_layers(torch))
        model[2] = fsdp.FullyShardedDataParallel(model[2], **options)
        model = fsdp.FullyShardedDataParallel(model, **options)
        model.register_comm_hook(state, hook)
        try:
            model.register_comm_hook(state, hook)
        except AssertionError as error:
            found.append("already registered" in str(error))
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        x, targets = _batch(torch, 0, _share(rank, size))
        torch.nn.functional.cross_entropy(model(x), targets).backward()
        optimizer.step()
        with fsdp.FullyShardedDataParallel.summon_full_params(model):
            found.append([each.detach().clone() for each in model.parameters()])
    return found, len(counted)


def tensor_parallel(torch: Any, rank: int, size: int) -> Any:
    parallel = _module(torch, "tensor.parallel")
    mesh = _module(torch, "device_mesh").init_device_mesh("cpu", (size,))
    model = parallel.parallelize_module(
        torch.nn.Sequential(*_layers(torch)),
        mesh,
        {"0": parallel.ColwiseParallel(use_local_output=False), "2": parallel.RowwiseParallel()},
    )
    losses = _train(torch, model, slice(None))
    return losses, _whole(model), [each.to_local().detach().clone() for each in (*model[0].parameters(),)]


def pipelines(torch: Any, rank: int, size: int) -> Any:
    pipelining, found = _module(torch, "pipelining"), []
    cut = [0, 2, 5] if size == 2 else [0, 1, 2, 3, 5]
    for schedule in (pipelining.ScheduleGPipe, pipelining.Schedule1F1B):
        part = torch.nn.Sequential(*_layers(torch)[cut[rank] : cut[rank + 1]])
        stage = pipelining.PipelineStage(part, rank, size, torch.device("cpu"))
        run = schedule(stage, 4, torch.nn.functional.cross_entropy)
        trained = list(part.parameters())
        optimizer = torch.optim.AdamW(trained, 0.05) if trained else None
        losses: list[Any] = []
        for step in range(STEPS):
            x, targets = _batch(torch, step, slice(None))
            part.zero_grad()
            of_batch: list[Any] = []
            if rank == 0:
                run.step(x)
            elif rank == size - 1:
                run.step(target=targets, losses=of_batch)
            else:
                run.step()
            if optimizer is not None:
                optimizer.step()
            losses += [each.item() for each in of_batch]
        found.append((losses, [each.detach().clone() for each in trained]))
    return found


def several_stages(torch: Any, rank: int, size: int) -> Any:
    """Four stages on two ranks."""
    pipelining, found = _module(torch, "pipelining"), []
    cut = [0, 1, 2, 3, 5]
    for schedule in (pipelining.ScheduleLoopedBFS, pipelining.ScheduleInterleaved1F1B):
        layers = _layers(torch)
        parts = {index: torch.nn.Sequential(*layers[cut[index] : cut[index + 1]]) for index in (rank, rank + 2)}
        device = torch.device("cpu")
        stages = [pipelining.PipelineStage(part, index, 4, device) for index, part in parts.items()]
        run = schedule(stages, 4, torch.nn.functional.cross_entropy)
        trained = [each for part in parts.values() for each in part.parameters()]
        optimizer = torch.optim.AdamW(trained, 0.05)
        losses: list[Any] = []
        for step in range(STEPS):
            x, targets = _batch(torch, step, slice(None))
            optimizer.zero_grad()
            of_batch: list[Any] = []
            if rank == 0:
                run.step(x)
            else:
                run.step(target=targets, losses=of_batch)
            optimizer.step()
            losses += [each.item() for each in of_batch]
        found.append((losses, [each.detach().clone() for each in trained]))
    return found


def cut_twice(torch: Any, rank: int, size: int) -> Any:
    """Columns and rows along one dimension of the mesh, and parameters spread along the other."""
    fsdp, parallel = _module(torch, "fsdp"), _module(torch, "tensor.parallel")
    mesh = _module(torch, "device_mesh").init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    layers = [torch.nn.Linear(WIDTH, 8), torch.nn.Tanh(), torch.nn.Linear(8, CLASSES)]
    model = torch.nn.Sequential(*layers).double()
    with torch.no_grad():
        for number, each in enumerate(model.parameters()):
            each.copy_(_values(torch, tuple(each.shape), number) * 0.5)
    plan = {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()}
    model = parallel.parallelize_module(model, mesh["tp"], plan)
    for layer in (model[0], model[2]):
        fsdp.fully_shard(layer, mesh=mesh["dp"])
    fsdp.fully_shard(model, mesh=mesh["dp"])
    row = rank // (size // 2)
    losses = _train(torch, model, _share(row, 2), lambda norm: torch.nn.utils.clip_grad_norm_(model.parameters(), norm))
    placements = [str(each.placements) for each in model.parameters()]
    return losses, placements, _whole(model), [each.to_local().detach().clone() for each in model.parameters()]


SPREAD = (fully_sharded, older_fully_sharded, older_with_hooks, tensor_parallel, pipelines, several_stages)
OF_FOUR = (fully_sharded, pipelines, cut_twice)
