"""`FullyShardedDataParallel`: the older way to say `fully_shard`, as a module around another.

Parameters are sharded one by one, as `DTensor`s, also without `use_orig_params`: there are no flat parameters.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from ..._core.process.defaults import device_for
from ..._core.tensor import Tensor
from ...autograd.grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...nn.utils.clip_grad import clip_grad_norm_
from ...optim.optimizer import Optimizer
from .. import _calls
from .._world import get_rank, get_world_size, group_of
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor._dtensor import DTensor
from ._fully_shard import attach, default_device_type, state_of
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._unit import Unit
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import wrap_children

__all__ = ["BackwardPrefetch", "FullyShardedDataParallel", "OptimStateKeyType"]

_WRAPPED = "_fsdp_wrapped_module"
_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(Module):
    """A module whose parameters, gradients and optimizer states are sharded over processes.

    Args:
        module (Module): the module.
        process_group: the processes; None means all.
        device_id: the device of this process.
        device_mesh (DeviceMesh, optional): the processes; None means all.
        sharding_strategy (ShardingStrategy, optional): what is sharded: parameters too (`FULL_SHARD`, the default), or
            gradients and optimizer states only.
        cpu_offload (CPUOffload, optional): whether parameters rest in the host's memory.
        auto_wrap_policy: which modules below become units of their own.
        backward_prefetch (BackwardPrefetch, optional): when the parameters of the next unit are gathered. Default:
            `BackwardPrefetch.BACKWARD_PRE`.
        mixed_precision (MixedPrecision, optional): the dtypes.
        ignored_modules (iterable of Modules, optional): modules whose parameters stay whole.
        param_init_fn (Callable, optional): makes the parameters of modules on the meta device.
        sync_module_states (bool): whether the first process sends its parameters to the others. Default: `False`.
        forward_prefetch (bool): whether the next unit is gathered early in the forward pass. Default: `False`.
        limit_all_gathers (bool): whether units wait, so that few are gathered at a time. Default: `True`.
        use_orig_params (bool): whether `parameters()` gives the original ones. Default: `False`.
        ignored_states (iterable, optional): parameters or modules that stay whole.

    Returns:
        what the module returns.

    Example:
        >>> model = dist.fsdp.FullyShardedDataParallel(torch.nn.Linear(2, 2))
        >>> model(torch.ones(1, 2)).sum().backward()
    """

    _fsdp_wrapped_module: Module

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
        _is_inner: bool = False,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        device_type = default_device_type() if device_id is None else device_for(device_id).type
        mesh = device_mesh if device_mesh is not None else _mesh_for(process_group, strategy, device_type)
        ignored = set(ignored_modules or ()) | {each for each in ignored_states or () if isinstance(each, Module)}
        apart = {each for each in ignored_states or () if isinstance(each, Tensor)}
        apart |= {param for each in ignored for param in each.parameters()}
        if sync_module_states:
            _take_over_from_first(module, mesh)
        options = {
            "sharding_strategy": strategy, "backward_prefetch": backward_prefetch, "mixed_precision": mixed_precision,
            "param_init_fn": param_init_fn, "device_mesh": mesh, "ignored_states": apart, "cpu_offload": cpu_offload,
        }  # fmt: skip
        if auto_wrap_policy is not None:

            def make(part: Module, **others: Any) -> FullyShardedDataParallel:
                return FullyShardedDataParallel(part, **{**options, **others}, _is_inner=True)

            wrap_children(module, auto_wrap_policy, make, ignored)
        if param_init_fn is not None and any(each.is_meta for each in module.parameters()):
            param_init_fn(module)
        self._modules[_WRAPPED] = module
        self.sharding_strategy = strategy
        precision = mixed_precision or MixedPrecision()
        if precision.buffer_dtype is not None:
            _convert_buffers(module, precision.buffer_dtype)
        converts = precision.cast_forward_inputs if _is_inner else precision.cast_root_forward_inputs
        keeps = strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
        attach(
            [self],
            mesh,
            MixedPrecisionPolicy(
                precision.param_dtype, precision.reduce_dtype or precision.param_dtype, None, converts
            ),
            CPUOffloadPolicy() if cpu_offload is not None and cpu_offload.offload_params else OffloadPolicy(),
            reshard_after_forward=False if keeps else None if not _is_inner else True,
            ignored=apart,
        )
        if backward_prefetch is None:
            for state in filter(None, [state_of(self)]):
                state.backward_prefetch = []
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self.register_load_state_dict_pre_hook(_before_load)

    @property
    def module(self) -> Module:
        """The module whose parameters are sharded."""
        found = self._modules[_WRAPPED]
        assert found is not None
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside computes."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def __getitem__(self, key: Any) -> Any:
        inner: Any = self.module
        return inner[key]

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters by the names that they have without the wrapping."""
        for name, each in super().named_parameters(prefix, recurse, remove_duplicate):
            yield name.replace(f"{_WRAPPED}.", ""), each

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers by the names that they have without the wrapping."""
        for name, each in super().named_buffers(prefix, recurse, remove_duplicate):
            yield name.replace(f"{_WRAPPED}.", ""), each

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call `fn` with every module below, whole parameters in place."""
        with FullyShardedDataParallel.summon_full_params(self):
            return super().apply(fn)

    # ----- the units below ----------------------------------------------------------------------------------------

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrapped modules in a module; the outermost alone if `root_only`."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        if not root_only:
            return found
        below = {inner for each in found for inner in each.module.modules()}
        return [each for each in found if each not in below]

    def check_is_root(self) -> bool:
        """Whether this is the outermost wrapped module: of those that ask or run first."""
        state = state_of(self)
        assert state is not None
        state.belong(self)
        return state.is_root

    def _unit(self) -> Unit | None:
        state = state_of(self)
        return None if state is None else state.unit

    @contextlib.contextmanager
    def no_sync(self) -> Generator[None, None, None]:
        """A context whose backward passes leave gradients on the processes that computed them."""
        units = [each._unit() for each in self.fsdp_modules(self)]
        for unit in filter(None, units):
            unit.syncs_gradients = False
        try:
            yield
        finally:
            for unit in filter(None, units):
                unit.syncs_gradients = True

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients so that their norm, over all processes, is at most `max_norm`; returns the norm."""
        norm: Any = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        whole: Tensor = norm.full_tensor() if isinstance(norm, DTensor) else norm
        return whole

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Generator[None, None, None]:
        """A context in which the modules have whole parameters; changes are kept unless `writeback` is False."""
        if with_grads:
            raise NotImplementedError("summon_full_params gathers parameters, not their gradients")
        found = FullyShardedDataParallel.fsdp_modules(module)
        chosen = found if recurse else found[:1]
        units = [unit for unit in (each._unit() for each in chosen) if unit is not None]
        for unit in units:
            unit.gather()
        try:
            yield
        finally:
            for unit in units:
                if writeback and not rank0_only:
                    unit.take_back()
                unit.give_up()

    # ----- states -------------------------------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Choose the form of states; returns the form before."""
        before = FullyShardedDataParallel.get_state_dict_type(module)
        model_config, optim_config = _CONFIGS[state_dict_type]
        chosen = StateDictSettings(
            state_dict_type, state_dict_config or model_config(), optim_state_dict_config or optim_config()
        )
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = chosen
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The form of states."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        if not found:
            raise RuntimeError("no FullyShardedDataParallel is in the module: its state has no form to choose")
        return found[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Generator[None, None, None]:
        """A context in which states have another form."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for each in FullyShardedDataParallel.fsdp_modules(module):
                each._settings = before

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Parameters and buffers by the names that they have without the wrapping, in the form that was chosen."""
        for each in self.fsdp_modules(self):
            unit = each._unit()
            if unit is not None:
                unit.give_up()
        found = super().state_dict(*args, **kwargs)
        config = self._settings.state_dict_config
        whole = self._settings.state_dict_type is StateDictType.FULL_STATE_DICT
        rank0_only = whole and getattr(config, "rank0_only", False)
        for name in list(found):
            value = found[name]
            if whole and isinstance(value, DTensor):
                value = value.full_tensor()
            if self._settings.state_dict_type is StateDictType.LOCAL_STATE_DICT and isinstance(value, DTensor):
                value = value.to_local()
            if rank0_only and get_rank():
                del found[name]
                continue
            moved = value.cpu() if config.offload_to_cpu and isinstance(value, Tensor) else value
            del found[name]
            found[name.replace(f"{_WRAPPED}.", "")] = moved
        return found

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by the names of parameters, in the form that was chosen."""
        from ..checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

        settings = FullyShardedDataParallel.get_state_dict_type(model)
        whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        found = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=whole))
        dropped = whole and getattr(settings.optim_state_dict_config, "rank0_only", False) and get_rank() != 0
        return {} if dropped else found

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """A state by the names of parameters as one that `optim.load_state_dict` takes."""
        from ..checkpoint.state_dict import state_by_position

        found = state_by_position(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The whole state of an optimizer, on every process or on the first alone."""
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Optimizer, group: Any = None) -> dict[str, Any]:
        """The state of an optimizer, sharded as it is."""
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Let `hook(state, gradients, own_part)` make the mean of the gradients of each unit and write the part of this
        process; without sharding `hook(state, gradients)`, in place.
        """
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        if not callable(hook):
            raise ValueError(f"The communication hook must be callable but got {hook}")
        units = [unit for unit in (each._unit() for each in self.fsdp_modules(self)) if unit is not None]
        if self.sharding_strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
            raise AssertionError(f"Communication hook is not supported for hybrid strategies: {self.sharding_strategy}")
        if any(unit.hook is not None for unit in units):
            raise AssertionError("A communication hook is already registered")
        for unit in units:
            unit.hook = functools.partial(hook, state)


def _mesh_for(process_group: Any, strategy: ShardingStrategy, device_type: str) -> DeviceMesh:
    if strategy is ShardingStrategy.NO_SHARD:
        return init_device_mesh(device_type, (get_world_size(), 1))
    if strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
        raise ValueError(
            f"{strategy.name} needs a device_mesh with two dimensions: replicas, and the processes that share each"
        )
    if process_group is not None:
        return DeviceMesh.from_group(group_of(process_group), device_type)
    return init_device_mesh(device_type, (get_world_size(),))


def _take_over_from_first(module: Module, mesh: DeviceMesh) -> None:
    """The parameters and buffers of the first process become those of all."""
    for each in (*module.parameters(), *module.buffers()):
        data = each.detach()
        whole = data.contiguous()
        for number in range(mesh.ndim):
            _calls.broadcast(whole, group=mesh.get_group(number), group_src=0)
        if whole is not data:
            with no_grad():
                data.copy_(whole)


def _convert_buffers(module: Module, wanted: Any) -> None:
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                part._buffers[name] = buffer.to(wanted)


def _before_load(module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Take a state by the names without the wrapping; whole tensors are sharded as the parameters are."""
    from ..checkpoint.state_dict import placed

    inner = f"{prefix}{_WRAPPED}."
    for name in [each for each in state if each.startswith(prefix) and not each.startswith(inner)]:
        state[inner + name[len(prefix) :]] = state.pop(name)
    unit = module._unit()
    if unit is None:
        return
    unit.give_up()
    paths = {part: path for path, part in module.module.named_modules()}
    for entry in unit.entries:
        for owner, name in entry.owners:
            key = inner + ".".join(filter(None, (paths[owner], name)))
            if key in state:
                state[key] = placed(state[key], entry.present())
