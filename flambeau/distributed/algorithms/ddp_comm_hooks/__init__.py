"""Functions that exchange gradients, for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from ...._core.names.absent import Table
from . import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]

__getattr__, __dir__ = (
    Table(__name__).submodules("default_hooks debugging_hooks post_localSGD_hook powerSGD_hook").parts()
)


class DDPCommHookType(enum.Enum):
    """The functions by name."""

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)
    POWER_SGD = partial(powerSGD_hook.powerSGD_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let one of the functions exchange the gradients of a model."""
    model.register_comm_hook(state, comm_hook_type.value)
