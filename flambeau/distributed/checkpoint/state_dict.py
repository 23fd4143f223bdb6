"""The state of a model and its optimizers by the names of parameters, whatever wraps the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from ..._core.tensor import Tensor
from ..._ops.create.like import zeros_like
from ...nn.modules.module import Module
from ...nn.parallel.distributed import DistributedDataParallel
from ...optim.optimizer import Optimizer
from .. import _calls, _objects
from .._world import get_rank, is_initialized
from ..tensor._dtensor import DTensor, made
from ..tensor._layout import Layout
from ..tensor._moving import move
from ..tensor.placement_types import Replicate

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


# ruff: noqa: UP007  programs look at these as at PyTorch's, which are unions of `typing`
FQNS_T: TypeAlias = set[str]
"""The names of one parameter."""
PrimitiveType: TypeAlias = Union[DTensor, Tensor, int, float, str]
ValueType: TypeAlias = Union[PrimitiveType, list[PrimitiveType], tuple[PrimitiveType, ...], dict[str, Any]]
"""What a state holds under a name."""
DictValueType: TypeAlias = dict[str, ValueType]
ListDictValueType: TypeAlias = list[DictValueType]
OptimizerStateType: TypeAlias = dict[str, Union[DictValueType, ListDictValueType]]
"""The state of an optimizer."""


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


def _given(value: Any, options: StateDictOptions) -> Any:
    """A value of a state as it was asked for: distributed tensors put together, and moved to the host."""
    if isinstance(value, DTensor) and options.full_state_dict:
        value = value.full_tensor()
    return value.cpu() if isinstance(value, Tensor) and options.cpu_offload else value


def _is_dropped(options: StateDictOptions) -> bool:
    """Whether this process gets nothing: a whole state on the host is for one of them."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0


def placed(value: Any, like: Any, from_first: bool = False) -> Any:
    """A tensor distributed as `like` is. `from_first`: process 0 has it, and the others have None."""
    if from_first and isinstance(like, Tensor):
        data = value.detach().clone().contiguous() if isinstance(value, Tensor) else _empty_whole(like)
        _calls.broadcast(data, group_src=0)
        value = data
    if isinstance(value, Tensor) and isinstance(like, DTensor) and not isinstance(value, DTensor):
        layout = like._layout
        whole = Layout(layout.shape, layout.mesh, tuple([Replicate()] * layout.mesh.ndim))
        return made(move(value.detach(), whole, layout), layout)
    return value


def _empty_whole(like: Tensor) -> Tensor:
    local = like._local_tensor if isinstance(like, DTensor) else like
    return local.detach().new_empty(like.shape)


def _plain(name: str) -> str:
    """A name without those of wrappers."""
    for wrapper in ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod."):
        name = name.replace(wrapper, "")
    return name


def _names(model: Module) -> dict[int, str]:
    return {id(each): _plain(name) for name, each in _inner(model).named_parameters()}


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _flat(named: dict[str, Any]) -> dict[str, Any]:
    """The state of an optimizer in one dictionary: each parameter has its own values and those of its group."""
    found = {f"state.{name}.{key}": value for name, state in named["state"].items() for key, value in state.items()}
    for group in named["param_groups"]:
        for name in group["params"]:
            found |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return found


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """The nested state of an optimizer for a flat one; each parameter is a group of its own."""
    found: dict[str, dict[str, dict[str, Any]]] = {"state": {}, "param_groups": {}}
    for key, value in flat.items():
        section, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        found[section].setdefault(name, {})[last] = value
    groups = [{"params": [name], **group} for name, group in found["param_groups"].items()]
    return {"state": found["state"], "param_groups": groups}


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Parameters and buffers by name."""
    chosen = options or StateDictOptions()
    inner = _inner(model)
    state = {_plain(name): _given(value, chosen) for name, value in inner.state_dict().items()}
    if chosen.ignore_frozen_params:
        for name, each in inner.named_parameters():
            if not each.requires_grad:
                state.pop(_plain(name), None)
    if submodules is not None:
        wanted = [f"{_plain(name)}." for name, module in inner.named_modules() if module in submodules]
        state = {name: value for name, value in state.items() if name.startswith(tuple(wanted))}
    return {} if _is_dropped(chosen) else state


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of optimizers by the names of parameters."""
    chosen = options or StateDictOptions()
    names = _names(model)
    whole: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _initialise(optimizer)
        for group in optimizer.param_groups:
            for each in group["params"]:
                state = optimizer.state.get(each)
                if state:
                    whole["state"][names[id(each)]] = {key: _given(value, chosen) for key, value in state.items()}
            whole["param_groups"].append({**group, "params": [names[id(each)] for each in group["params"]]})
    if _is_dropped(chosen):
        return {}
    return _flat(whole) if chosen.flatten_optimizer_state_dict else whole


def _initialise(optimizer: Optimizer) -> None:
    """Let an optimizer that has not made a step have the state that a step makes: a checkpoint is read into it."""
    params = [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]
    if optimizer.state or not params or any(each.grad is not None for each in params):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for each in params:
        each.grad = zeros_like(each)
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * 0  # nothing moves
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


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
    """Take over parameters and buffers; whole tensors are sharded where the model's are."""
    chosen = options or StateDictOptions()
    inner = _inner(model)
    targets = inner.state_dict()
    found: dict[str, Any] = {}
    for name, like in targets.items():
        plain = _plain(name)
        if chosen.broadcast_from_rank0:
            found[name] = placed(model_state_dict.get(plain), like, True)
        elif plain in model_state_dict:
            found[name] = placed(model_state_dict[plain], like)
    known = {_plain(name) for name in targets}
    found.update({name: value for name, value in model_state_dict.items() if name not in known})
    return inner.load_state_dict(found, strict=chosen.strict)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Take over the state of optimizers; whole tensors are sharded where the parameters are."""
    chosen = options or StateDictOptions()
    if chosen.broadcast_from_rank0:
        optim_state_dict = _from_first(optim_state_dict)
    if chosen.flatten_optimizer_state_dict:
        optim_state_dict = _nested(optim_state_dict)
    for optimizer in _listed(optimizers):
        optimizer.load_state_dict(state_by_position(model, optimizer, optim_state_dict))


def state_by_position(model: Module, optimizer: Optimizer, named: dict[str, Any]) -> dict[str, Any]:
    """A state by the names of parameters as one by their positions; whole tensors are sharded where parameters are."""
    names = _names(model)
    saved_groups = {name: group for group in named["param_groups"] for name in group["params"]}
    position, state, groups = 0, {}, []
    for group in optimizer.param_groups:
        members = []
        for each in group["params"]:
            name = names[id(each)]
            if name in named["state"]:
                state[position] = {key: _copied(value, each) for key, value in named["state"][name].items()}
            members.append(position)
            position += 1
        first = names[id(group["params"][0])] if group["params"] else ""
        groups.append({**group, **saved_groups.get(first, {}), "params": members})
    return {"state": state, "param_groups": groups}


def _copied(value: Any, param: Tensor) -> Any:
    """A value of a parameter's state that is nobody else's, distributed as the parameter if it has its shape."""
    if not isinstance(value, Tensor):
        return value
    own = value.detach().clone()
    return placed(own, param) if own.shape == param.shape else own


def _from_first(state: dict[str, Any]) -> dict[str, Any]:
    """The state that process 0 has, on all of them."""
    listed: list[Any] = [state]
    _objects.broadcast_object_list(listed, group_src=0)
    found: dict[str, Any] = listed[0]
    return found


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
