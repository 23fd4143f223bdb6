"""`FullyShardedDataParallel`: the older API of what `fully_shard` does."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms._comm_hooks import LOW_PRECISION_HOOKS, default_hooks
from flambeau.distributed.fsdp import (
    CPUOffload,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from flambeau.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    enable_wrap,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from flambeau.distributed.tensor import DTensor
from flambeau.distributed.testing import run_in_threads

from .test_fully_shard import INPUTS, TARGETS, Block, close, model_of, train

CPU = torch.device("cpu")
sharded = functools.partial(FullyShardedDataParallel, device_id=CPU)  # where there is a GPU too


@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"])
def test_training_is_that_of_one_process(strategy: str) -> None:
    whole = model_of()
    optimizer = torch.optim.AdamW(whole.parameters(), lr=0.05)
    train(whole, 0, 1, optimizer, 2, clip=None)

    def work(rank: int) -> None:
        inner = model_of()
        if rank:
            with torch.no_grad():
                inner[0].weight.zero_()
        model = sharded(
            inner,
            auto_wrap_policy=ModuleWrapPolicy({Block}),
            sharding_strategy=ShardingStrategy[strategy],
            sync_module_states=True,
            use_orig_params=True,
        )
        assert isinstance(model.module[1], FullyShardedDataParallel)
        assert isinstance(model[1].first, nn.Linear)
        assert [name for name, _ in model.named_parameters()] == [name for name, _ in whole.named_parameters()]
        own = torch.optim.AdamW(model.parameters(), lr=0.05)
        train(model, rank, 2, own, 2, clip=None)
        close(model.state_dict(), whole.state_dict())
        state = FullyShardedDataParallel.optim_state_dict(model, own)
        torch.testing.assert_close(state["state"]["3.weight"]["exp_avg"], optimizer.state[whole[3].weight]["exp_avg"])
        # The state goes into a new model and optimizer, and both train on alike.
        again = sharded(model_of(), auto_wrap_policy=ModuleWrapPolicy({Block}))
        again.load_state_dict(model.state_dict())
        later = torch.optim.AdamW(again.parameters(), lr=0.05)
        later.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(again, later, state))
        for each, its in ((model, own), (again, later)):
            train(each, rank, 2, its, 1)
        close(again.state_dict(), model.state_dict(), rtol=0, atol=0)

    run_in_threads(work, 2)


def test_forms_of_states() -> None:
    whole = model_of().state_dict()

    def work(rank: int) -> None:
        model = sharded(model_of(), auto_wrap_policy=ModuleWrapPolicy({Block}))
        with FullyShardedDataParallel.state_dict_type(
            model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
        ):
            found = model.state_dict()
            assert bool(found) == (rank == 0)
            if found:
                close(found, whole, rtol=0, atol=0)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            spread = model.state_dict()
            assert list(spread) == list(whole)
            assert all(isinstance(each, DTensor) for each in spread.values())
            model.load_state_dict(spread)
        with FullyShardedDataParallel.summon_full_params(model):
            assert type(model.module[3].weight) is nn.Parameter
            with torch.no_grad():
                model.module[3].weight.fill_(2)
        assert (model.state_dict()["3.weight"] == 2).all()
        assert FullyShardedDataParallel.get_state_dict_type(model).state_dict_type is StateDictType.FULL_STATE_DICT

    run_in_threads(work, 2)


def test_gradients_without_exchange_and_their_norm() -> None:
    whole = model_of()
    for number in range(2):
        nn.functional.mse_loss(whole(INPUTS[number]), TARGETS[number]).backward()
    norm = nn.utils.clip_grad_norm_(whole.parameters(), 0.01)

    def work(rank: int) -> None:
        model = sharded(model_of(), auto_wrap_policy=ModuleWrapPolicy({Block}))
        share = slice(rank * 4, rank * 4 + 4)
        with model.no_sync():
            nn.functional.mse_loss(model(INPUTS[0][share]), TARGETS[0][share]).backward()
        nn.functional.mse_loss(model(INPUTS[1][share]), TARGETS[1][share]).backward()
        torch.testing.assert_close(model.clip_grad_norm_(0.01), norm)
        grads = {name: each.grad for name, each in model.named_parameters()}
        close(grads, {name: each.grad for name, each in whole.named_parameters()})

    run_in_threads(work, 2)


@pytest.mark.parametrize("strategy", [ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD])
def test_gradients_that_travel_in_half_precision(strategy: ShardingStrategy) -> None:
    """PyTorch allows these hooks on GPUs alone."""

    def work(rank: int) -> None:
        models = [sharded(nn.Linear(6, 3), sharding_strategy=strategy, sync_module_states=True) for _ in range(3)]
        for model, hook in zip(models[1:], LOW_PRECISION_HOOKS, strict=True):
            model.load_state_dict(models[0].state_dict())
            model.register_comm_hook(default_hooks.LowPrecisionState(torch.distributed.group.WORLD), hook)
        for model in models:
            model(torch.arange(12.0).reshape(2, 6) * (rank + 0.3)).pow(2).mean().backward()
        exact, *rounded = ([each.grad.full_tensor() for each in model.parameters()] for model in models)
        for found, tolerance in zip(rounded, (1e-3, 1e-2), strict=True):
            torch.testing.assert_close(found, exact, rtol=tolerance, atol=0.01)
            assert not all(torch.equal(one, other) for one, other in zip(found, exact, strict=True))
        with pytest.raises(AssertionError, match="already registered"):
            models[1].register_comm_hook(None, print)
        with pytest.raises(ValueError, match="must be callable"):
            models[0].register_comm_hook(None, 3)

    run_in_threads(work, 2)


def test_policies_and_settings() -> None:
    def wrapped(policy: Any) -> list[str]:
        model = sharded(nn.Sequential(Block(False), nn.Linear(6, 3)), auto_wrap_policy=policy)
        return [type(each.module).__name__ for each in FullyShardedDataParallel.fsdp_modules(model)]

    def work(rank: int) -> None:
        layers = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
        assert wrapped(layers) == ["Sequential", "Block"]
        large = functools.partial(size_based_auto_wrap_policy, min_num_params=45)
        assert wrapped(large) == ["Sequential", "Linear", "Linear"]
        assert wrapped(CustomPolicy(lambda module: isinstance(module, nn.LayerNorm))) == ["Sequential", "LayerNorm"]
        with enable_wrap(wrapper_cls=FullyShardedDataParallel, device_id=CPU):
            assert isinstance(wrap(nn.Linear(2, 2)), FullyShardedDataParallel)
        if not torch.cuda.is_available():
            with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
                sharded(nn.Linear(2, 2), cpu_offload=CPUOffload(offload_params=True))
        model = sharded(nn.Linear(4, 2), mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))
        output = model(torch.ones(1, 4))
        output.float().sum().backward()
        assert output.dtype is torch.bfloat16
        assert model.weight.grad.dtype is torch.float32
        assert repr(model) == (
            "FullyShardedDataParallel(\n  (_fsdp_wrapped_module): Linear(in_features=4, out_features=2, bias=True)\n)"
        )

    run_in_threads(work, 2)
