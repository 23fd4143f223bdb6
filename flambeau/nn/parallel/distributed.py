"""`DistributedDataParallel`: the same model in several processes, each on its own part of the data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._core.device import CPU
from ..._core.names.same_as import same_as
from ..._core.tensor import Tensor, wrap
from ...autograd.grad_mode import is_grad_enabled
from ...distributed import _calls
from ...distributed._buckets import DEFAULT_MEGABYTES, FIRST_BUCKET, MEGABYTE
from ...distributed._reducer import Reducer
from ...distributed._same_bits import check_module, is_asked_for, refuse
from ...distributed._sync import broadcast_coalesced, check_same_shapes
from ...distributed._world import ProcessGroup, group_of
from ...distributed.algorithms.join import Join, Joinable, JoinHook, warn_of_many_iterations
from ...distributed.reductions import ReduceOp
from ...utils._pytree import tree_leaves, tree_map
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]

_MANY_ITERATIONS = 1000


def _one_device(device_ids: Sequence[Any] | None, output_device: Any, parameters: Sequence[Tensor]) -> list[Any] | None:
    """`device_ids`, to whose one device inputs are moved, once it is known that all parameters are there."""
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    places = {each.device for each in parameters}
    if (device_ids or output_device is not None) and (len(places) > 1 or any(each.type == "cpu" for each in places)):
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU modules, "
            f"but got device_ids {device_ids}, output_device {output_device}, and module parameters on "
            f"{', '.join(sorted(map(str, places)))}. Leave both out for modules on several devices or on the CPU."
        )
    return list(device_ids) if device_ids else None


def _moved(value: Any, place: Any) -> Any:
    """A tensor on a device; anything else as it is."""
    return value.to(place) if isinstance(value, Tensor) else value


class DistributedDataParallel(Module, Joinable):
    """A model whose gradients are the mean over all processes; the exchange runs beside the backward pass.

    Every process makes the same model and wraps it; rank 0's parameters and buffers become those of all. What each
    process then does with it is what it would do with the model itself.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        Module.__init__(self)
        Joinable.__init__(self)
        if mixed_precision is not None:
            raise NotImplementedError("DistributedDataParallel has no mixed_precision here: use autocast in the model")
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group = group_of(process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, each) for name, each in module.named_parameters() if name not in ignored]
        trained = [(name, each) for name, each in named if each.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.module = module
        self.dim = dim
        self.device_ids = _one_device(device_ids, output_device, [each for _, each in named])
        self.output_device = (
            output_device if self.device_ids is None or output_device is not None else self.device_ids[0]
        )
        self.device = trained[0][1].device
        self.broadcast_buffers = broadcast_buffers if broadcast_buffers is not None else True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        self.modules_buffers = [each for name, each in module.named_buffers() if name not in ignored]
        self.bucket_bytes_cap = int((bucket_cap_mb or DEFAULT_MEGABYTES) * MEGABYTE)
        first = FIRST_BUCKET if bucket_cap_mb is None else min(FIRST_BUCKET, self.bucket_bytes_cap)
        limits = [first, self.bucket_bytes_cap]
        if bucket_cap_mb_list:
            limits = [int(each * MEGABYTE) for each in bucket_cap_mb_list]
        if init_sync:
            check_same_shapes([name for name, _ in named], [each for _, each in named], self.process_group)
            broadcast_coalesced([*(each for _, each in named), *self.modules_buffers], self.process_group)
        self._limits = limits
        self.reducer = self._new_reducer()

    def _new_reducer(self) -> Reducer:
        named = [
            (name, each)
            for name, each in self.module.named_parameters()
            if each.requires_grad and name not in self.parameters_to_ignore
        ]
        return Reducer(
            [each for _, each in named],
            [name for name, _ in named],
            self.process_group,
            self._limits,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.static_graph,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("process_group", "reducer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.process_group = group_of(None)
        self.reducer = self._new_reducer()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A region in which gradients are added up on each process and not exchanged: for several backward passes."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the model computes; a backward pass that follows exchanges gradients."""
        synchronised = is_grad_enabled() and self.require_backward_grad_sync
        if is_asked_for() and is_grad_enabled():
            check_module(self.module, self.process_group)
            if self._join_config.enable:
                refuse("join()", "Give all processes as many samples")
            if not synchronised:
                refuse("no_sync()", "Exchange the gradients of each backward pass")
        source = self._notify(synchronised) if self._join_config.enable else 0
        if synchronised:
            self.reducer.rebuild()
        if self._will_sync_buffers():
            broadcast_coalesced(self.modules_buffers, self.process_group, source)
        if self.device_ids is not None:
            inputs, kwargs = tree_map(lambda each: _moved(each, self.device), (inputs, kwargs))
        output = self.module(*inputs, **kwargs)
        if synchronised:
            self.require_forward_param_sync = True
            self.reducer.prepare(each for each in tree_leaves(output) if isinstance(each, Tensor))
        else:
            self.require_forward_param_sync = False
        return output

    def _will_sync_buffers(self) -> bool:
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self.modules_buffers)

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Let a function exchange the gradients: it gets a bucket, and returns a future of what becomes of it."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self.reducer.register_hook(state, hook)

    def _set_static_graph(self) -> None:
        self.static_graph = True
        self.reducer._static = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What the exchange is like."""
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "backend_name": self.process_group.name(),
            "bucket_sizes": ", ".join(str(bucket.buffer.nbytes) for bucket in self.reducer.buckets),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "iteration": self.reducer.passes,
        }

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    # ----- different numbers of inputs ----------------------------------------------------------------------------

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A region in which the processes may have different numbers of inputs."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process does that has no inputs any more."""
        return _JoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    join_device: Any = same_as("device", "The device of the parameters.")

    join_process_group: ProcessGroup = same_as("process_group", "The group that exchanges gradients.")

    def _notify(self, synchronised: bool) -> int:
        """Tell those that have no inputs any more what comes; the process whose buffers are taken."""
        work = Join.notify_join_context(self)
        if work is not None:
            work.wait()
            remaining = int(work.result()[0])
            self.reducer.divisor = self.process_group.size() if self._divides_by_all else remaining
        return _agreed(self, synchronised, True)[1]

    _divides_by_all = True


def _agreed(model: DistributedDataParallel, synchronised: bool, has_input: bool) -> tuple[bool, int]:
    """Whether those that have inputs exchange gradients in this iteration, and the last of them: buffers are its."""
    group = model.process_group
    tensor = wrap(np.array([synchronised, group.rank() if has_input else -1], np.int64), CPU)
    _calls.all_reduce(tensor, ReduceOp.MAX, group)
    return bool(tensor._array[0]), int(tensor._array[1])


class _JoinHook(JoinHook):
    """Takes part in the exchange of the others with gradients of zero."""

    def __init__(self, model: DistributedDataParallel, divide_by_all: bool) -> None:
        self._model = model
        self._iterations = 0
        model._divides_by_all = divide_by_all

    def main_hook(self) -> None:
        model = self._model
        self._iterations += 1
        if self._iterations == _MANY_ITERATIONS:
            warn_of_many_iterations(_MANY_ITERATIONS)
        synchronised, source = _agreed(model, False, False)
        if synchronised:
            model.reducer.rebuild()
        if model._will_sync_buffers():
            broadcast_coalesced(model.modules_buffers, model.process_group, source)
        model.require_forward_param_sync = synchronised
        if synchronised:
            model.reducer.join_others()

    def post_hook(self, is_last_joiner: bool) -> None:
        """The parameters of a process that was there to the end become those of all."""
        group = self._model.process_group
        rank = wrap(np.array([group.rank() if is_last_joiner else -1], np.int64), CPU)
        _calls.all_reduce(rank, ReduceOp.MAX, group)
        tensors = [*self._model.module.parameters(), *self._model.modules_buffers]
        broadcast_coalesced(tensors, group, int(rank._array[0]))
