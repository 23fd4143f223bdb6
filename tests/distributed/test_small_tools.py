"""What stands beside the collectives: optimizers inside the backward pass, scaled gradients, a stop in the debugger."""

from __future__ import annotations

import pdb
from typing import Any

import pytest

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from flambeau.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers
from flambeau.distributed.pipelining.schedules import ScheduleInterleaved1F1B, get_schedule_class
from flambeau.distributed.testing import run_in_threads


def test_optimizers_inside_the_backward_pass() -> None:
    model = nn.Linear(3, 2)
    start = model.weight.detach().clone()
    _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.5})
    _apply_optimizer_in_backward(torch.optim.SGD, [model.weight], {"lr": 0.25})
    model(torch.ones(1, 3)).sum().backward()
    torch.testing.assert_close(model.weight.detach(), start - 0.75)
    assert model.weight.grad is None
    assert len(_get_in_backward_optimizers(model)) == 3


@pytest.mark.parametrize("scaler_class", [ShardedGradScaler, torch.amp.GradScaler])
def test_a_step_that_overflows_on_one_process_is_skipped_by_all(scaler_class: Any) -> None:
    def work(rank: int) -> list[tuple[float, float]]:
        model: Any = fully_shard(nn.Linear(4, 4), mesh=init_device_mesh("cpu", (2,)))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = scaler_class("cpu", init_scale=8.0)
        found = []
        for step in range(2):
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(2, 4)).sum()).backward()
            if step == 1 and rank == 1:
                model.weight.grad.to_local().fill_(float("inf"))
            before = model.weight.to_local().detach().clone()
            scaler.step(optimizer)
            scaler.update()
            found.append((scaler.get_scale(), (before - model.weight.to_local().detach()).max().item()))
        return found

    for found in run_in_threads(work, 2):
        assert found == [(8.0, pytest.approx(0.2)), (4.0, 0.0)]


def test_one_process_stops_in_the_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[tuple[int, str]] = []
    monkeypatch.setattr(
        pdb.Pdb, "set_trace", lambda self, frame: stopped.append((dist.get_rank(), frame.f_code.co_name))
    )

    def work(rank: int) -> None:
        dist.breakpoint(1)

    run_in_threads(work, 2)
    assert stopped == [(1, "work")]


def test_debug_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dist.get_debug_level()
    try:
        for name in ("INFO", "DETAIL", "OFF"):
            monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", name)
            dist.set_debug_level_from_env()
            assert dist.get_debug_level() == dist.DebugLevel[name]
        dist.set_debug_level(dist.DebugLevel.DETAIL)
        assert dist.get_debug_level() == 2
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "LOUD")
        with pytest.raises(RuntimeError, match="TORCH_DISTRIBUTED_DEBUG must be"):
            dist.set_debug_level_from_env()
    finally:
        dist.set_debug_level(before)


def test_calls_in_other_processes_are_refused() -> None:
    from flambeau.distributed import rpc

    assert not rpc.is_available()
    for name in ("init_rpc", "rpc_sync", "remote", "RRef"):
        with pytest.raises(NotImplementedError, match="a peer could run any function here"):
            getattr(rpc, name)("worker")


def test_schedules_by_name() -> None:
    assert get_schedule_class("interleaved1F1B") is ScheduleInterleaved1F1B
    with pytest.raises(ValueError, match="Unknown schedule name none"):
        get_schedule_class("none")


@pytest.mark.parametrize("finds", [False, True])
def test_gradients_of_passes_without_exchange_are_exchanged_after_all(finds: bool) -> None:
    """As accelerate's `trigger_sync_in_backward` asks for."""

    def work(rank: int) -> list[list[float]]:
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), find_unused_parameters=finds)
        with model.no_sync():
            loss = model(torch.full((1, 2), float(rank))).sum()
        model.reducer.prepare_for_backward([])
        loss.backward()
        return [each.grad.flatten().tolist() for each in model.parameters()]

    assert run_in_threads(work, 2) == [[[0.5, 0.5], [1.0]]] * 2
