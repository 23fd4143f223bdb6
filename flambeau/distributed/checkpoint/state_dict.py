"""The state of a model and its optimizers by the names of parameters, whatever wraps the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._core.tensor import Tensor
from ...nn.modules.module import Module
from ...nn.parallel.distributed import DistributedDataParallel
from ...optim.optimizer import Optimizer

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """Which state, and where."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _inner(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def _moved(value: Any, options: StateDictOptions) -> Any:
    return value.cpu() if isinstance(value, Tensor) and options.cpu_offload else value


def _names(model: Module) -> dict[int, str]:
    return {id(each): name for name, each in _inner(model).named_parameters()}


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _check(options: StateDictOptions) -> None:
    if options.flatten_optimizer_state_dict:
        raise NotImplementedError("flatten_optimizer_state_dict is not built: the state is nested by name")


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Parameters and buffers by name."""
    chosen = options or StateDictOptions()
    inner = _inner(model)
    state = {name: _moved(value, chosen) for name, value in inner.state_dict().items()}
    if chosen.ignore_frozen_params:
        for name, each in inner.named_parameters():
            if not each.requires_grad:
                state.pop(name, None)
    if submodules is not None:
        wanted = [f"{name}." for name, module in inner.named_modules() if module in submodules]
        state = {name: value for name, value in state.items() if name.startswith(tuple(wanted))}
    return state


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of optimizers by the names of parameters."""
    chosen = options or StateDictOptions()
    _check(chosen)
    names = _names(model)
    whole: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        for group in optimizer.param_groups:
            for each in group["params"]:
                state = optimizer.state.get(each)
                if state:
                    whole["state"][names[id(each)]] = {key: _moved(value, chosen) for key, value in state.items()}
            whole["param_groups"].append({**group, "params": [names[id(each)] for each in group["params"]]})
    return whole


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Take over parameters and buffers."""
    chosen = options or StateDictOptions()
    return _inner(model).load_state_dict(model_state_dict, strict=chosen.strict)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Take over the state of optimizers."""
    _check(options or StateDictOptions())
    names = _names(model)
    saved_groups = {name: group for group in optim_state_dict["param_groups"] for name in group["params"]}
    for optimizer in _listed(optimizers):
        position, state, groups = 0, {}, []
        for group in optimizer.param_groups:
            members = []
            for each in group["params"]:
                name = names[id(each)]
                if name in optim_state_dict["state"]:
                    state[position] = optim_state_dict["state"][name]
                members.append(position)
                position += 1
            first = names[id(group["params"][0])] if group["params"] else ""
            groups.append({**group, **saved_groups.get(first, {}), "params": members})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Take over the state of a model and of its optimizers."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
