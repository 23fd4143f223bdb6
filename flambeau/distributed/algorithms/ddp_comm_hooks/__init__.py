"""Functions that exchange gradients, for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...._core.names.absent import Table
from . import debugging_hooks, default_hooks, powerSGD_hook, quantization_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("default_hooks debugging_hooks post_localSGD_hook powerSGD_hook quantization_hooks")
    .parts()
)


@dataclass(frozen=True)
class _Registration:
    """What gives a model one of the functions: no `partial`, which newer Pythons take for a method of an enumeration.

    With a `rank` what is kept between iterations is made here, from the group of processes.
    """

    hook: Callable[..., Any]
    rank: int | None = None

    def __call__(self, model: Any, state: Any) -> None:
        if self.rank is not None:
            state = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=self.rank)
        model.register_comm_hook(state, self.hook)


class DDPCommHookType(enum.Enum):
    """The functions by name: what each value does is to register one for a model."""

    ALLREDUCE = _Registration(default_hooks.allreduce_hook)
    FP16_COMPRESS = _Registration(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _Registration(default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Registration(quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _Registration(quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = _Registration(powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Registration(powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Registration(powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Registration(powerSGD_hook.batched_powerSGD_hook, 2)
    NOOP = _Registration(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let one of the functions exchange the gradients of a model; `state` is the group of processes."""
    comm_hook_type.value(model=model, state=state)
