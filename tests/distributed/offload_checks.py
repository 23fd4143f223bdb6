"""Parameters that rest on the host while a device computes; `nccl_program.py` runs this on the simulated device."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
import flambeau.distributed.checkpoint as dcp
from flambeau import nn
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import (
    CPUOffload,
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from flambeau.distributed.fsdp.wrap import ModuleWrapPolicy

from .test_fully_shard import INPUTS, TARGETS, Block, close, model_of, spread

PINNED, PAGED = CPUOffloadPolicy(), CPUOffloadPolicy(pin_memory=False)


def _pass(model: Any, rank: int, size: int, step: int) -> None:
    share = slice(rank * 8 // size, (rank + 1) * 8 // size)
    nn.functional.mse_loss(model(INPUTS[step][share].cuda()), TARGETS[step][share].cuda()).backward()


def _train(model: Any, optimizer: Any, rank: int, size: int, steps: range = range(3)) -> None:
    for step in steps:
        optimizer.zero_grad()
        _pass(model, rank, size, step)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()


def _same(model: Any, other: Any, of: Any = lambda param: param, exact: bool = True) -> None:
    """Whether two models have the same bits, or nearly so."""
    tolerances = {"rtol": 0, "atol": 0} if exact else {}
    for own, its in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(of(own).to_local().cpu(), of(its).to_local().cpu(), **tolerances)


def check_offload(rank: int, size: int, folder: Path, exact: bool = True) -> None:
    """Training with offloading beside training without it, on a mesh of devices.

    `exact`: an optimizer gives the same bits on the device and on the host, which a real device does not promise.
    """
    mesh = init_device_mesh("cuda", (size,))
    seen: list[Any] = []
    plain = spread(model_of(), mesh)
    for policy in (PINNED, PAGED):
        model = spread(model_of(), mesh, offload_policy=policy)
        model[3].register_forward_pre_hook(
            lambda module, args: seen.append((module.weight.device.type, args[0].device.type))
        )
        for each in (plain, model):
            each.zero_grad()
            _pass(each, rank, size, 0)
        _same(model, plain, lambda param: param.grad)
        for each in model.parameters():
            local = each.to_local()
            assert (local.device.type, local.is_pinned(), each.grad.to_local().device.type) == (
                "cpu",
                policy is PINNED,
                "cpu",
            )
    assert set(seen) == {("cuda", "cuda")}

    # Gradients that several passes leave, of which the first ones are not exchanged.
    for each in (plain, model):
        each.zero_grad()
        for step, syncs in enumerate((False, True, True)):
            each.set_requires_gradient_sync(syncs)
            _pass(each, rank, size, step)
    _same(model, plain, lambda param: param.grad)

    for each in (plain, model):
        _train(each, torch.optim.SGD(each.parameters(), 0.125, momentum=0.5), rank, size)
    _same(model, plain, exact=exact)
    for policy in (PINNED, None):
        precision = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        options = {} if policy is None else {"offload_policy": policy}
        last = spread(model_of(), mesh, mp_policy=precision, **options)
        _pass(last, rank, size, 0)
        model = last if policy is PINNED else model
    _same(model, last, lambda param: param.grad)
    assert all(each.dtype is each.grad.dtype is torch.float32 for each in model.parameters())
    _check_states(rank, size, mesh, folder)
    _check_older(rank, size, exact)
    _check_refusals(mesh)


def _check_states(rank: int, size: int, mesh: Any, folder: Path) -> None:
    """States that are saved, and loaded into a model that began without data."""
    model = spread(model_of(), mesh, offload_policy=PINNED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    _train(model, optimizer, rank, size, range(2))
    assert all(value.to_local().device.type == "cpu" for value in model.state_dict().values())
    assert all(state["exp_avg"].to_local().device.type == "cpu" for state in optimizer.state.values())
    whole = StateDictOptions(full_state_dict=True)
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optim": states[1]}, checkpoint_id=folder)
    with torch.device("meta"):
        later = nn.Sequential(nn.Embedding(11, 6), Block(False), Block(False), nn.Linear(6, 3))
    spread(later, mesh, offload_policy=PINNED)
    with pytest.raises(RuntimeError, match=r"materialized from meta device.*\['0.weight', '3.weight', '3.bias'\]"):
        later(INPUTS[0].cuda())
    later.to_empty(device="cpu")
    continued = torch.optim.AdamW(later.parameters(), lr=0.05)
    states = get_state_dict(later, continued)
    found = {"model": states[0], "optim": states[1]}
    dcp.load(found, checkpoint_id=folder)
    set_state_dict(later, continued, model_state_dict=found["model"], optim_state_dict=found["optim"])
    for each, its in ((model, optimizer), (later, continued)):
        _train(each, its, rank, size, range(2, 4))
    _same(later, model)
    assert all(each.to_local().is_pinned() for each in later.parameters())
    state = get_model_state_dict(model, options=whole)
    set_model_state_dict(later, {name: torch.zeros_like(each) for name, each in state.items()}, options=whole)
    assert not any(each.to_local().any() for each in later.parameters())
    set_model_state_dict(later, state, options=whole)
    _same(later, model)


def _check_older(rank: int, size: int, exact: bool) -> None:
    """The older API trains likewise."""
    newer = spread(model_of(), init_device_mesh("cuda", (size,)))
    older = FullyShardedDataParallel(
        model_of(),
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        cpu_offload=CPUOffload(offload_params=True),
        device_id=torch.device("cuda"),
    )
    for each in (newer, older):
        _train(each, torch.optim.SGD(each.parameters(), 0.125), rank, size)
    expected = get_model_state_dict(newer, options=StateDictOptions(full_state_dict=True))
    found = {name: value.cuda() for name, value in older.state_dict().items()}
    close(found, expected, **({"rtol": 0, "atol": 0} if exact else {}))
    with FullyShardedDataParallel.summon_full_params(older):
        assert older.module[3].weight.device.type == "cuda"
        with torch.no_grad():
            older.module[3].weight.fill_(2)
    assert all(each.device.type == "cpu" for each in older.parameters())
    assert (older.state_dict()["3.weight"] == 2).all()


def _check_refusals(mesh: Any) -> None:
    model = fully_shard(nn.Linear(4, 4), mesh=mesh, offload_policy=PINNED).cuda()
    with pytest.raises(RuntimeError, match=r"materialized on CPU when enabling CPU offloading.*'weight'.*cuda"):
        model(torch.ones(1, 4))


def check_memory(rank: int, size: int) -> None:
    """What the device holds: nothing at rest, and one layer after the other in a pass."""
    layer = 4 * 256 * 256

    def held(reshard: bool, **options: Any) -> tuple[float, float, float]:
        """How many layers are there at rest, with gradients and momentum, and at most in either pass."""
        gc.collect()
        before = torch.cuda.memory_allocated()
        mesh = init_device_mesh("cuda", (size,))
        model = nn.Sequential(*[nn.Linear(256, 256, bias=False) for _ in range(8)])
        for each in model:
            fully_shard(each, mesh=mesh, reshard_after_forward=reshard, **options)
        fully_shard(model, mesh=mesh, **options)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        model(torch.ones(1, 256)).sum().backward()
        optimizer.step()
        at_rest, most = torch.cuda.memory_allocated(), []
        torch.cuda.reset_peak_memory_stats()
        result = model(torch.ones(1, 256))
        most.append(torch.cuda.max_memory_allocated() - at_rest)
        torch.cuda.reset_peak_memory_stats()
        result.sum().backward()
        most.append(torch.cuda.max_memory_allocated() - at_rest)
        return (at_rest - before) / layer, most[0] / layer, most[1] / layer

    whole, resharded, offloaded = held(False), held(True), held(True, offload_policy=PINNED)
    assert min(whole[0], resharded[0]) > 20, (whole, resharded)
    assert offloaded[0] < 3, offloaded
    assert min(whole[1:]) > 7, whole
    assert max(*resharded[1:], *offloaded[1:]) < 6, (resharded, offloaded)
