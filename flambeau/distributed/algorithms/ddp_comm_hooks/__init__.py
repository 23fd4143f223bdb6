"""Functions that exchange gradients, for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from typing import Any

from ...._core.names.absent import Table
from . import debugging_hooks, default_hooks, powerSGD_hook, quantization_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("default_hooks debugging_hooks post_localSGD_hook powerSGD_hook quantization_hooks")
    .parts()
)


def _register(comm_hook: Callable[..., Any], model: Any, state: Any) -> None:
    model.register_comm_hook(state, comm_hook)


def _register_factors(comm_hook: Callable[..., Any], rank: int, model: Any, state: Any) -> None:
    """`state` is the group of processes: what is kept between iterations is made here."""
    model.register_comm_hook(powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank), comm_hook)


class DDPCommHookType(enum.Enum):
    """The functions by name: what each value does is to register one for a model."""

    ALLREDUCE = partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_register, default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = partial(_register, quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = partial(_register, quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = partial(_register_factors, powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = partial(_register_factors, powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = partial(_register_factors, powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = partial(_register_factors, powerSGD_hook.batched_powerSGD_hook, 2)
    NOOP = partial(_register, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let one of the functions exchange the gradients of a model; `state` is the group of processes."""
    comm_hook_type.value(model=model, state=state)
