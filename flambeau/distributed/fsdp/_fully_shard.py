"""`fully_shard`: parameters, gradients and the state of optimizers sharded over processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, cast

from ..._core.device import CPU, usable_device
from ..._core.device import device as Device
from ..._core.modes import THREAD
from ..._core.node import Node, next_sequence_number
from ..._core.tensor import Tensor
from ...autograd.engine import queue_callback
from ...cuda import is_available
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...utils._pytree import tree_flatten, tree_map
from .._world import get_world_size, is_initialized
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor._dtensor import DTensor
from ..tensor.placement_types import Shard
from ._offload import Offload
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._unit import Entry, Unit

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


class _Family:
    """What the units below one root share: the order in which they run, and the end of the backward pass."""

    def __init__(self) -> None:
        self.order: list[_State] = []
        self.ends_pass = False
        self.is_last_backward = True

    def wait_for_parts(self) -> None:
        """Wait until nothing reads the parts that rest on the host."""
        for state in self.order:
            if state.unit is not None and state.unit.offload is not None:
                state.unit.offload.wait_for_parts()


class _State:
    """What `fully_shard` knows of a module."""

    def __init__(self, modules: list[Module], unit: Unit | None, place: Device, policy: MixedPrecisionPolicy) -> None:
        self.modules = modules
        self.unit = unit
        self.place = place
        self.policy = policy
        self.family: _Family | None = None
        self.is_root = False
        self.decides_reshard = False
        """Whether the caller said what happens after the forward pass; a root keeps its parameters otherwise."""
        self.forward_prefetch: list[_State] = []
        self.backward_prefetch: list[_State] | None = None
        self._entered = 0
        self._since = 0
        """The sequence number at which the forward pass began."""

    # ----- the forward pass ---------------------------------------------------------------------------------------

    def before_forward(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Gather the parameters; move and convert inputs."""
        self.belong(module)
        self._entered += 1
        if self._entered == 1:
            self._since = next_sequence_number()
        if self.is_root and self.place is not CPU:
            args, kwargs = tree_map(functools.partial(_at, self.place), (args, kwargs))
        if self.unit is not None:
            self.unit.gather()
            for other in self.forward_prefetch:
                if other.unit is not None:
                    other.unit.begin_gathering()
        wanted = self.policy.param_dtype
        if wanted is not None and self.policy.cast_forward_inputs:
            args, kwargs = tree_map(functools.partial(_converted, wanted), (args, kwargs))
        return args, kwargs

    def after_forward(self, module: Module, args: Any, output: Any) -> Any:
        """Give up the parameters, unless they are kept; see to the backward pass. An error comes here too."""
        self._entered = max(self._entered - 1, 0)
        if self.family is None:
            return output
        if self.policy.output_dtype is not None:
            output = tree_map(functools.partial(_converted, self.policy.output_dtype), output)
        recomputes = THREAD.modes.backward_pass is not None  # a checkpoint: the parameters are needed for longer
        if self.unit is not None and not self._entered and not recomputes:
            if self not in self.family.order:
                self.family.order.append(self)
            if self.unit.reshard_after_forward and not self._keeps_as_root():
                self.unit.give_up(_nodes_of(output), self._since)
        if self.is_root and not THREAD.modes.grad:  # no backward pass follows, so the parameters may be changed now
            self.family.wait_for_parts()
        for each in tree_flatten(output)[0]:
            if isinstance(each, Tensor) and each.requires_grad:
                each.register_hook(self._before_backward)
        return output

    def _keeps_as_root(self) -> bool:
        return self.is_root and not self.decides_reshard

    def belong(self, module: Module) -> None:
        """Be a root, and have all units below, unless there is a root already."""
        if self.family is not None:
            return
        family, finished = _Family(), _let_finish()
        paths = {part: path for path, part in module.named_modules()}
        for part in paths:
            state = state_of(part)
            if state is not None:
                if state.family is not None and state is not self:
                    raise RuntimeError(
                        "FSDP state has already been lazily initialized: run the forward pass through the root module "
                        "first, not through a part of it"
                    )
                state.family = family
                if state.unit is not None:
                    state.unit.finished = finished
                    state.unit.name_entries(paths)
        self.is_root = True

    # ----- the backward pass --------------------------------------------------------------------------------------

    def _before_backward(self, grad: Tensor) -> None:
        assert self.family is not None
        if not self.family.ends_pass:
            self.family.ends_pass = True
            queue_callback(functools.partial(_end_pass, self.family))
        if self.unit is None:
            return
        if self.unit.unshard_in_backward:
            self.unit.gather()
        for other in self._next_in_backward():
            if other.unit is not None and other.unit.unshard_in_backward:
                other.unit.begin_gathering()

    def _next_in_backward(self) -> list[_State]:
        """Whose parameters will be needed next: those of the unit that ran before this one in the forward pass."""
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        assert self.family is not None
        order = self.family.order
        at = order.index(self) if self in order else 0
        return order[at - 1 : at] if at else []


def _let_finish() -> Callable[[Unit], None]:
    """For all units of a family: while the sums of one are on their way, those of the one before it are taken."""
    sent: list[Unit] = []

    def finished(unit: Unit) -> None:
        for other in sent:
            if other is not unit:
                other.finish_adding_up()
        sent[:] = [unit]

    return finished


def _end_pass(family: _Family) -> None:
    """The backward pass is over: units that did not get all gradients are finished too."""
    family.ends_pass = False
    for state in family.order:
        unit = state.unit
        if unit is not None and (unit.is_whole or unit._ready):
            unit.after_backward()
    for state in family.order:
        if state.unit is not None:
            state.unit.finish_adding_up()
            state.unit.give_up_gathering()
    for state in family.order:
        if state.unit is not None:
            state.unit.take_what_arrived()
    if family.is_last_backward:
        family.order.clear()


def _converted(wanted: Any, value: Any) -> Any:
    return value.to(wanted) if isinstance(value, Tensor) and value.is_floating_point() else value


def _nodes_of(output: Any) -> list[Node]:
    """The nodes that made the tensors of an output."""
    parts = [each._local_tensor if isinstance(each, DTensor) else each for each in tree_flatten(output)[0]]
    found = [each.grad_fn for each in parts if isinstance(each, Tensor)]
    return [each for each in found if each is not None]


def _at(place: Device, value: Any) -> Any:
    return value.to(place) if isinstance(value, Tensor) and not isinstance(value, DTensor) else value


def state_of(module: Module) -> _State | None:
    """What `fully_shard` knows of a module; None if it was not applied to it."""
    found: _State | None = vars(module).get("_fsdp_state")
    return found


class UnshardHandle:
    """The end of a gathering that was begun.

    Args:
        unit (Unit, optional): what is gathered.
    """

    def __init__(self, unit: Unit | None) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Put the whole parameters into the module."""
        if self._unit is not None:
            self._unit.gather()
            self._unit = None


class FSDPModule:
    """What a module can do to which `fully_shard` was applied; such modules get a class of their own.

    Args:
        *args: not for users: `fully_shard` makes such modules.
        **kwargs: not for users.

    Example:
        >>> layer = dist.fsdp.fully_shard(torch.nn.Linear(2, 2))
        >>> isinstance(layer, dist.fsdp.FSDPModule)
        True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A new module of the class that it was: copies and parts are not sharded by themselves."""
        original = next(each for each in cls.__mro__ if not issubclass(each, FSDPModule))
        return original(*args, **kwargs)

    def _states(self, recurse: bool) -> list[_State]:
        own = cast(Module, self)
        found = [state_of(each) for each in (own.modules() if recurse else [own])]
        return [each for each in found if each is not None]

    def _units(self, recurse: bool) -> list[Unit]:
        return [each.unit for each in self._states(recurse) if each.unit is not None]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module's own unit."""
        (state,) = self._states(False)
        if state.unit is not None:
            state.unit.begin_gathering()
        handle = UnshardHandle(state.unit)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Give up the whole parameters of this module's own unit."""
        for unit in self._units(False):
            unit.give_up()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward passes add up gradients over processes, or each process collects its own."""
        for unit in self._units(recurse):
            unit.syncs_gradients = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are added up over the replicas of a mesh with two dimensions."""
        for unit in self._units(recurse):
            unit.reduces_over_replicas = requires_all_reduce

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the next backward pass is the last of this forward pass."""
        for state in self._states(False):
            if state.family is not None:
                state.family.is_last_backward = is_last_backward

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are given up between the forward and the backward pass."""
        for state in self._states(recurse):
            state.decides_reshard = True
            if state.unit is not None:
                state.unit.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether whole parameters are given up after the backward pass."""
        for unit in self._units(recurse):
            unit.reshard_after_backward = reshard_after_backward

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether the backward pass needs the parameters: that of an embedding does not."""
        for unit in self._units(False):
            unit.unshard_in_backward = unshard_in_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are gathered while this module computes."""
        (state,) = self._states(False)
        state.forward_prefetch = [each for module in modules for each in module._states(False)]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are gathered while the backward pass of this module computes."""
        (state,) = self._states(False)
        state.backward_prefetch = [each for module in modules for each in module._states(False)]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What the sums of gradients are divided by, in place of the number of processes."""
        for unit in self._units(False):
            unit.divide_factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008  (PyTorch's signature; it does not change)
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008  (likewise)
    ignored_params: set[Parameter] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Shard the parameters of a module, or of a list of modules, as one unit; inner modules come first.

    `reshard_after_forward`: whether the whole parameters are given up between forward and backward pass; by default
    they are, but for the outermost module. A number, which asks for parts over fewer processes, counts as True.
    `offload_policy`: with `CPUOffloadPolicy()` the parts of parameters, their gradients and what an optimizer keeps of
    them are in the memory of the host, and the device of the mesh has whole parameters while it computes with them.

    Args:
        module: the module, or a list of modules that form one unit.
        mesh (DeviceMesh, optional): the processes; None means all.
        reshard_after_forward (bool or int, optional): whether parameters are dropped after the forward pass and
            gathered again; None drops those of all but the outermost module.
        shard_placement_fn (Callable, optional): says along which dimension a parameter is cut; None means the first.
        mp_policy (MixedPrecisionPolicy): the dtypes.
        offload_policy (OffloadPolicy): where parameters rest. Default: `OffloadPolicy()`.
        ignored_params (set[Parameter], optional): parameters that stay whole.
        dp_mesh_dims: must be None: meshes have one or two dimensions.

    Returns:
        the module.

    Example:
        >>> layer = dist.fsdp.fully_shard(torch.nn.Linear(2, 4))
        >>> layer.weight.to_local().shape               # half of the rows
        torch.Size([2, 2])
        >>> layer(torch.ones(1, 2)).shape
        torch.Size([1, 4])
    """
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard takes a mesh of one or two dimensions, and no dp_mesh_dims")
    found = _default_mesh() if mesh is None else mesh
    if found.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {found}")
    modules = [module] if isinstance(module, Module) else list(module)
    for each in modules:
        if state_of(each) is not None:
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once. fully_shard has "
                f"already been applied to the following module:\n{each}"
            )
        if type(each).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
    attach(
        modules, found, mp_policy, offload_policy, reshard_after_forward, ignored_params or set(), shard_placement_fn
    )
    for each in modules:
        each.__class__ = _sharded_class(type(each))
        each.register_state_dict_pre_hook(_before_state_dict)
    return module


def attach(
    modules: list[Module],
    mesh: DeviceMesh,
    policy: MixedPrecisionPolicy,
    offload_policy: OffloadPolicy,
    reshard_after_forward: bool | int | None = None,
    ignored: set[Any] | None = None,
    placement_of: Callable[[Parameter], Shard | None] | None = None,
) -> None:
    """Make a unit of the parameters of modules, and let it follow their forward and backward passes."""
    place = CPU if mesh.device_type == "cpu" else usable_device(mesh.device_type)
    _move(modules, place, ignored or set())
    entries = _own_entries(modules, ignored or set(), placement_of)
    offload = Offload(place, offload_policy.pin_memory) if isinstance(offload_policy, CPUOffloadPolicy) else None
    unit = Unit(entries, mesh, place, policy, offload, reshard_after_forward is not False) if entries else None
    if unit is not None:
        unit.shard()
    state = _State(modules, unit, place, policy)
    state.decides_reshard = reshard_after_forward is not None
    for each in modules:
        vars(each)["_fsdp_state"] = state
        each.register_forward_pre_hook(state.before_forward, prepend=True, with_kwargs=True)
        each.register_forward_hook(state.after_forward, always_call=True)


def _before_state_dict(module: Module, prefix: str, keep_vars: bool) -> None:
    state = state_of(module)
    if state is not None and state.unit is not None:
        state.unit.give_up()


_CLASSES: dict[type, type] = {}


def _sharded_class(cls: type) -> type:
    """The class of modules of a class to which `fully_shard` was applied."""
    if cls not in _CLASSES:
        _CLASSES[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    return _CLASSES[cls]


def _default_mesh() -> DeviceMesh:
    if not is_initialized():
        raise RuntimeError("fully_shard needs a process group: call init_process_group first, or pass a mesh")
    return init_device_mesh(default_device_type(), (get_world_size(),))


def default_device_type() -> str:
    """Where models are computed with if nobody says: on the accelerator, if there is one."""
    return "cuda" if is_available() else "cpu"


def _move(modules: Iterable[Module], place: Device, ignored: set[Any]) -> None:
    """Let the parameters and buffers that no unit below has taken be on a device."""
    for module in modules:
        for part in _without_units(module):
            for each in (*part._parameters.values(), *part._buffers.values()):
                if each is None or each.is_meta or isinstance(each, DTensor) or each.device == place:
                    continue
                if not any(each is other for other in ignored):
                    each.data = each.detach().to(place)


def _own_entries(
    modules: Iterable[Module], ignored: set[Any], placement_of: Callable[[Parameter], Shard | None] | None
) -> list[Entry]:
    """The parameters of the modules that no unit below has taken."""
    found: dict[int, Entry] = {}
    for module in modules:
        for part in _without_units(module):
            for name, param in part._parameters.items():
                if param is None or any(param is each for each in ignored):
                    continue
                if id(param) in found:
                    found[id(param)].owners.append((part, name))
                    continue
                if not param.ndim:
                    raise ValueError("fully_shard doesn't support scalar parameters: change it to a 1-D tensor")
                chosen = None if placement_of is None else placement_of(param)
                found[id(param)] = Entry([(part, name)], 0 if chosen is None else chosen.dim % param.ndim)
    return list(found.values())


def _without_units(module: Module) -> Iterable[Module]:
    """A module and those below it, except units and what is below them."""
    if state_of(module) is None:
        yield module
        for child in module.children():
            yield from _without_units(child)


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Treat calls of a method as forward passes. A module without `fully_shard` stays as it is.

    Args:
        module (Module): a module to which `fully_shard` was applied.
        method_name (str): the name of the method.

    Example:
        >>> class Model(torch.nn.Linear):
        ...     def encode(self, x):
        ...         return self(x)
        >>> model = dist.fsdp.fully_shard(Model(2, 2))
        >>> dist.fsdp.register_fsdp_forward_method(model, "encode")
        >>> model.encode(torch.ones(1, 2)).shape
        torch.Size([1, 2])
    """
    state = state_of(module)
    if state is None:
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        output = None
        try:
            given, options = state.before_forward(module, args, kwargs)
            output = original(*given, **options)
        finally:
            output = state.after_forward(module, args, output)
        return output

    setattr(module, method_name, wrapped)
