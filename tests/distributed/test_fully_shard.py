"""`fully_shard`: training is that of one process, and its state can be read on other numbers of processes."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
import flambeau.distributed.checkpoint as dcp
from flambeau import nn
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from flambeau.distributed.tensor import DTensor, Replicate, Shard
from flambeau.distributed.testing import run_in_threads
from flambeau.safetensors import safe_open
from flambeau.utils.checkpoint import checkpoint

from .test_launch import ENVIRONMENT

STEPS = 4
GENERATOR = torch.Generator().manual_seed(1)
INPUTS = torch.randint(0, 11, (STEPS, 8), generator=GENERATOR)
TARGETS = torch.randn(STEPS, 8, 3, generator=GENERATOR)


class Block(nn.Module):
    """Two layers, the second of which may run again in the backward pass."""

    def __init__(self, recompute: bool) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(6, 7), nn.Linear(7, 6), nn.LayerNorm(6)
        self.recompute = recompute

    def forward(self, x: Any) -> Any:
        hidden = self.first(x).relu()
        rest = checkpoint(self.second, hidden, use_reentrant=False) if self.recompute else self.second(hidden)
        return self.norm(x + rest)


def model_of(recompute: bool = False) -> nn.Sequential:
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Embedding(11, 6), Block(recompute), Block(recompute), nn.Linear(6, 3))
    with torch.no_grad():
        for each in model.parameters():
            each.copy_(torch.randn(each.shape, generator=generator) * 0.3)
    return model


def spread(model: nn.Sequential, mesh: Any, **options: Any) -> nn.Sequential:
    for each in model[1:3]:
        fully_shard(each, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    return model


def train(model: Any, rank: int, size: int, optimizer: Any, steps: int = STEPS, clip: float | None = 0.1) -> None:
    share = slice(rank * 8 // size, (rank + 1) * 8 // size)
    for x, y in zip(INPUTS[:steps], TARGETS[:steps], strict=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[share]), y[share]).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    model = model_of()
    train(model, 0, 1, torch.optim.AdamW(model.parameters(), lr=0.05))
    return model.state_dict()


def close(state: dict[str, Any], expected: dict[str, Any], **tolerances: float) -> None:
    assert list(state) == list(expected)
    for name, value in state.items():
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        torch.testing.assert_close(whole, expected[name], **tolerances, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("size", [2, 4])
def test_training_is_that_of_one_process(size: int, expected: dict[str, Any]) -> None:
    def work(rank: int) -> None:
        model = spread(model_of(recompute=size == 4), init_device_mesh("cpu", (size,)))
        assert isinstance(model, FSDPModule)
        assert type(model[1]).__name__ == "FSDPBlock"
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        train(model, rank, size, optimizer)
        assert all(isinstance(each, DTensor) and each.placements == (Shard(0),) for each in model.parameters())
        assert sum(each.to_local().numel() for each in model.parameters()) < 400 / size
        close(model.state_dict(), expected)

    run_in_threads(work, size)


def test_replicas_of_spread_models(expected: dict[str, Any]) -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        model = spread(model_of(), mesh, reshard_after_forward=False)
        train(model, rank, 4, torch.optim.AdamW(model.parameters(), lr=0.05))
        assert all(each.placements == (Replicate(), Shard(0)) for each in model.parameters())
        close(model.state_dict(), expected)

    run_in_threads(work, 4)


def test_gradients_collected_before_they_are_added_up() -> None:
    whole = model_of()
    for x, y in zip(INPUTS[:2], TARGETS[:2], strict=True):
        nn.functional.mse_loss(whole(x), y).backward()
    expected = {name: each.grad for name, each in whole.named_parameters()}

    def work(rank: int) -> None:
        model = spread(model_of(), init_device_mesh("cpu", (2,)))
        share = slice(rank * 4, rank * 4 + 4)
        for number in range(2):
            model.set_requires_gradient_sync(number == 1)
            nn.functional.mse_loss(model(INPUTS[number][share]), TARGETS[number][share]).backward()
            if number == 0:
                assert all(each.grad is None for each in model.parameters())
        close({name: each.grad for name, each in model.named_parameters()}, expected)

    run_in_threads(work, 2)


def test_mixed_precision() -> None:
    def work(rank: int) -> None:
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32)
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        seen = []
        model[1].register_forward_pre_hook(lambda module, args: seen.append((module.weight.dtype, args[0].dtype)))
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)), mp_policy=policy)
        output = model(torch.ones(3, 4))
        output.sum().backward()
        assert seen == [(torch.bfloat16, torch.bfloat16)]
        assert output.dtype is torch.float32
        assert all(each.dtype is torch.float32 and each.grad.dtype is torch.float32 for each in model.parameters())

    run_in_threads(work, 2)


def test_a_model_that_starts_without_data() -> None:
    def work(rank: int) -> None:
        with torch.device("meta"):
            model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        with pytest.raises(RuntimeError, match=r"still on meta device: \['0.weight', "):
            model(torch.ones(1, 4))
        model.to_empty(device="cpu")
        assert model[0].weight.to_local().shape == (3, 4)
        set_model_state_dict(model, start if rank == 0 else {}, options=StateDictOptions(
            full_state_dict=True, broadcast_from_rank0=True
        ))  # fmt: skip
        torch.testing.assert_close(model(torch.ones(1, 4)), wanted)

    plain = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
    start, wanted = plain.state_dict(), plain(torch.ones(1, 4)).detach()
    run_in_threads(work, 2)


def test_what_the_methods_do() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        model = spread(model_of(), mesh)
        handle = model[1].unshard(async_op=True)
        handle.wait()
        assert type(model[1].first.weight) is nn.Parameter
        model[1].reshard()
        assert isinstance(model[1].first.weight, DTensor)
        model.set_modules_to_forward_prefetch([model[1]])
        model[2].set_modules_to_backward_prefetch([model[1]])
        model(INPUTS[0]).sum().backward()
        assert all(each.grad is not None for each in model.parameters())
        with pytest.raises(AssertionError, match="can only be applied to a module once"):
            fully_shard(model, mesh=mesh)
        if not torch.cuda.is_available():
            with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
                fully_shard(nn.Linear(2, 2), mesh=mesh, offload_policy=CPUOffloadPolicy())
        with pytest.raises(ValueError, match="containers that do not implement forward"):
            fully_shard(nn.ModuleList([nn.Linear(2, 2)]), mesh=mesh)

    run_in_threads(work, 2)


def test_checkpoints_on_other_numbers_of_processes(tmp_path: Path) -> None:
    def save(rank: int) -> Any:
        model = spread(model_of(), init_device_mesh("cpu", (4,)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        train(model, rank, 4, optimizer, 1)
        states = get_state_dict(model, optimizer)
        dcp.save({"model": states[0], "optim": states[1], "epoch": 3}, checkpoint_id=tmp_path)
        whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
        found = get_model_state_dict(model, options=whole), get_optimizer_state_dict(model, optimizer, options=whole)
        assert bool(found[0]) == bool(found[1]) == (rank == 0)
        return found

    model_state, optimizer_state = run_in_threads(save, 4)[0]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) == 4
    for name, value in model_state.items():  # one set of safetensors files, every tensor whole
        with safe_open(tmp_path / index["weight_map"][f"model.{name}"]) as file:
            assert torch.equal(file.get_tensor(f"model.{name}"), value)

    def load(rank: int) -> None:
        model = spread(model_of(), init_device_mesh("cpu", (2,)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.5)
        whole = StateDictOptions(full_state_dict=True)

        def spoil() -> None:
            with torch.no_grad():
                for each in model.parameters():
                    each.fill_(7)

        def check() -> None:
            close(get_model_state_dict(model, options=whole), model_state, rtol=0, atol=0)
            found = get_optimizer_state_dict(model, optimizer, options=whole)
            assert found["param_groups"] == optimizer_state["param_groups"]
            for name, state in optimizer_state["state"].items():
                close(found["state"][name], state, rtol=0, atol=0)
            assert isinstance(optimizer.state[model[3].weight]["exp_avg"], DTensor)

        spoil()
        model_part, optimizer_part = get_state_dict(model, optimizer)
        states = {"model": model_part, "optim": optimizer_part, "epoch": 0}
        dcp.load(states, checkpoint_id=tmp_path)
        set_state_dict(model, optimizer, model_state_dict=states["model"], optim_state_dict=states["optim"])
        assert states["epoch"] == 3
        check()
        spoil()
        from_first = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(model, model_state if rank == 0 else {}, options=from_first)
        set_optimizer_state_dict(model, optimizer, optimizer_state if rank == 0 else {}, options=from_first)
        check()

    run_in_threads(load, 2)

    plain = model_of()  # and one process that spreads nothing
    state = {"model": copy.deepcopy(plain.state_dict())}
    dcp.load(state, checkpoint_id=tmp_path, no_dist=True)
    close(state["model"], model_state, rtol=0, atol=0)


@pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")
def test_a_program_for_pytorch_under_the_launcher(tmp_path: Path) -> None:
    program = Path(__file__).with_name("fsdp_program.py")
    command = [sys.executable, "-m", "flambeau", "launch", "--standalone", "--nproc-per-node", "2", str(program)]
    found = subprocess.run(
        [*command, str(tmp_path)], env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False
    )
    assert found.returncode == 0, found.stderr
    line = next(each for each in found.stdout.splitlines() if each.startswith("losses"))
    losses, continued = line.removeprefix("losses ").split(" continued ")
    # What PyTorch 2.13 prints for the same program on two processes.
    assert json.loads(losses) == pytest.approx([3.1496, 2.8651, 2.9199, 2.7571, 2.9461], abs=2e-3)
    assert continued == "True"
    assert next(iter(torch.load(tmp_path / "whole.pt"))) == "tokens.weight"
