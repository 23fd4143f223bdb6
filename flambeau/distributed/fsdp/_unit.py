"""A unit of `fully_shard`: parameters that are gathered and given up together.

At rest each process has a part of every parameter, a `DTensor`. Before the forward pass, and again before the backward
pass, the parts of all are gathered into whole parameters, which take their places in the modules. When all gradients of
a unit are there, they are added up, each process gets its part of the sums, and the whole parameters are given up.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.device import device as Device
from ..._core.kind import kind_of
from ..._core.node import Node
from ..._core.tensor import Tensor
from ...autograd.grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import _calls
from .._collective import begun
from .._work import Work
from ..device_mesh import DeviceMesh
from ..reductions import ReduceOp
from ..tensor._dtensor import DTensor, made
from ..tensor._layout import Layout
from ..tensor.placement_types import Placement, Replicate, Shard, _StridedShard
from ._offload import Arriving, Offload
from ._policies import MixedPrecisionPolicy
from ._room import Room, room_for
from ._rows import Rows, common_dtype


@dataclass
class Entry:
    """One parameter: where it is used, how it is cut, and the whole while that is there."""

    owners: list[tuple[Module, str]]
    dim: int
    name: str = ""
    """The name in the outermost module, once it is known."""
    shape: tuple[int, ...] = ()
    """The shape of the whole parameter, or of this process's part where `parallelize_module` has cut it before."""
    inner: Layout | None = None
    """How it was cut before."""
    whole: Any = None
    """The leaf that gets gradients."""
    shown: Any = None
    """What modules have while the whole is there."""
    sharded: Any = None
    """The parameter at rest; while the whole is in its place, modules do not have it."""

    def present(self) -> Any:
        """The parameter that the modules have now."""
        module, name = self.owners[0]
        return module._parameters[name]

    def put(self, param: Any) -> None:
        """Let the modules have another parameter."""
        for module, name in self.owners:
            module._parameters[name] = param


@dataclass
class _Sending:
    """Gradients that are being added up."""

    work: Work
    received: Rows
    entries: list[Entry]


class Unit:
    """Parameters that come and go together."""

    def __init__(
        self,
        entries: list[Entry],
        mesh: DeviceMesh,
        place: Device,
        policy: MixedPrecisionPolicy,
        offload: Offload | None,
        reshard_after_forward: bool,
    ) -> None:
        self.entries = entries
        self.mesh = mesh
        self.place = place
        """Where whole parameters are, and computed with."""
        self.policy = policy
        self.offload = offload
        """How parts rest on the host while the place is elsewhere."""
        self.reshard_after_forward = reshard_after_forward
        self.reshard_after_backward = True
        self.unshard_in_backward = True
        self.syncs_gradients = True
        self.reduces_over_replicas = True
        self.divide_factor: float | None = None
        self.hook: Callable[..., Any] | None = None
        """What adds gradients up in place of the unit, means included: `hook(whole gradients, own part)`, or, where
        nothing is cut, `hook(gradients)`.
        """
        self.is_whole = False
        self._group = mesh.get_group(mesh.ndim - 1)
        self._replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self._room: Room | None = None
        self._gathering: tuple[Work, Rows] | None = None
        self._sending: _Sending | None = None
        self._arriving: list[tuple[Arriving, list[Entry]]] = []
        self._ready: set[int] = set()
        self.finished: Callable[[Unit], None] = lambda unit: None
        """Called when all gradients of the unit are on their way."""

    @property
    def size(self) -> int:
        """Over how many processes a parameter is cut."""
        return self._group.size()

    def _layout(self, shape: tuple[int, ...], dim: int, inner: Layout | None) -> Layout:
        """How a parameter is sharded at rest. What was cut before is cut once more, so that its parts are the outer
        ones, though their dimension of the mesh is the last.
        """
        outer: list[Placement] = [Replicate()] if self.mesh.ndim == 2 else []
        if inner is None:
            return Layout(shape, self.mesh, (*outer, Shard(dim)))
        factor = math.prod(inner.mesh.size(at) for at, each in enumerate(inner.placements) if each.is_shard(dim))
        own = Shard(dim) if factor == 1 else _StridedShard(dim, split_factor=factor)
        return Layout(shape, _joint_mesh(self.mesh, inner.mesh), (*outer, own, *inner.placements))

    def part_of(self, entry: Entry) -> tuple[int, int]:
        """Where this process's part of a whole begins, and how long it is."""
        size, start = Shard.local_shard_size_and_offset(entry.shape[entry.dim], self.size, self._group.rank())
        return start, size

    def shard(self) -> None:
        """Cut the parameters, of which all processes have the same, and keep the own parts."""
        for entry in self.entries:
            param = entry.present()
            own = param.detach()
            if isinstance(own, DTensor):
                entry.inner, own = own._layout, own._local_tensor
            entry.shape = tuple(own.shape)
            part = own.narrow(entry.dim, *self.part_of(entry)).clone().contiguous()
            if self.offload is not None and not part.is_meta:
                part = self.offload.at_rest(part)
            layout = self._layout(tuple(param.shape), entry.dim, entry.inner)
            entry.sharded = Parameter(made(part, layout), param.requires_grad)
            entry.put(entry.sharded)

    def name_entries(self, paths: dict[Module, str]) -> None:
        """Give parameters the names that they have in a module, from the paths of the modules in it."""
        for entry in self.entries:
            module, name = entry.owners[0]
            entry.name = ".".join(filter(None, (paths.get(module, ""), name)))

    # ----- whole parameters ---------------------------------------------------------------------------------------

    def begin_gathering(self) -> None:
        """Start to gather the parts of all processes, unless they are here or on their way."""
        if self.is_whole or self._gathering is not None:
            return
        with no_grad():
            for entry in self.entries:
                entry.sharded = entry.present()
            self._check_parts()
            dtype = common_dtype([self._dtype_of(entry) for entry in self.entries])
            given, received = (self._rows(self.entries, count, dtype) for count in (1, self.size))
            with self._beside():
                for number, entry in enumerate(self.entries):
                    part = entry.sharded._local_tensor.detach()
                    given.put(0, number, part if self.offload is None else self.offload.fetched(part), entry.dim)
                work = begun(
                    "all_gather",
                    self._group._engine,
                    [received.memory, given.memory],
                    lambda engine, arrays: engine.all_gather(list(arrays[0].reshape(self.size, -1)), arrays[1]),
                    1,
                )
            self._gathering = work, received

    def _beside(self) -> contextlib.AbstractContextManager[None]:
        """A context for work that goes between host and device."""
        return contextlib.nullcontext() if self.offload is None else self.offload.beside()

    def _check_parts(self) -> None:
        """An error if parts are where they cannot be gathered from."""
        places = [(entry.name, entry.sharded._local_tensor) for entry in self.entries]
        if without_data := [name for name, part in places if part.is_meta]:
            raise RuntimeError(
                "FSDP parameters should be materialized from meta device before training, but the following were still "
                f"on meta device: {without_data}\nFor example, call module.to_empty(device) and give them values."
            )
        if self.offload is None:
            return
        if elsewhere := [(name, part.device) for name, part in places if not part._kind.is_cpu]:
            raise RuntimeError(
                "FSDP parameters should be materialized on CPU when enabling CPU offloading. For example, load a CPU "
                'state dict or call module.to_empty(device="cpu"). Found following parameters on non-CPU device: '
                f"{elsewhere}"
            )
        for _, part in places:
            self.offload.settle(part)

    def _rows(self, entries: list[Entry], count: int, dtype: Any) -> Rows:
        """Memory for parts of some parameters, or of their gradients."""
        shapes = []
        for entry in entries:
            shape = list(entry.shape)
            shape[entry.dim] = -(-shape[entry.dim] // self.size)
            shapes.append(tuple(shape))
        return Rows(shapes, count, self.place, dtype, self._group._engine)

    def gather(self) -> None:
        """Put whole parameters into the modules."""
        if self.is_whole:
            return
        self.begin_gathering()
        assert self._gathering is not None
        work, received = self._gathering
        self._gathering = None
        work.wait()
        self._make_room().enter([entry.whole for entry in self.entries])
        with no_grad():
            for number, entry in enumerate(self.entries):
                _fill(entry.whole, [received.part(row, number) for row in range(self.size)], entry.dim)
                entry.shown.requires_grad_(entry.sharded.requires_grad)
                entry.put(entry.shown)
        self.is_whole = True

    def _dtype_of(self, entry: Entry) -> Any:
        own = entry.sharded.dtype
        wanted = self.policy.param_dtype
        return wanted if wanted is not None and own.is_floating_point else own

    def _make_room(self) -> Room:
        """Memory for the whole parameters, which graphs find again."""
        if self._room is not None:
            return self._room
        self._room = room_for([(entry.shape, kind_of(self._dtype_of(entry), self.place)) for entry in self.entries])
        for number, (entry, tensor) in enumerate(zip(self.entries, self._room.tensors, strict=True)):
            given = tensor if entry.inner is None else made(tensor, entry.inner)
            entry.shown = Parameter(given, entry.sharded.requires_grad)
            entry.whole = entry.shown if entry.inner is None else entry.shown._local_tensor
            if entry.sharded.requires_grad:
                entry.whole.register_post_accumulate_grad_hook(self._hook(number))
        return self._room

    def give_up(self, last: Sequence[Node] = (), since: int = 0) -> None:
        """Put the parts back into the modules, and give up the memory of the whole parameters.

        After a forward pass: its last nodes, and the sequence number from which on it has recorded.
        """
        self.give_up_gathering()
        if not self.is_whole:
            return
        for entry in self.entries:
            entry.put(entry.sharded)
        assert self._room is not None
        self._room.leave([entry.whole for entry in self.entries], last, since)
        self.is_whole = False

    def take_back(self) -> None:
        """Keep what was changed in the whole parameters: each process takes its parts."""
        with no_grad():
            for entry in self.entries:
                local = entry.sharded._local_tensor
                local.detach().copy_(entry.whole.detach().narrow(entry.dim, *self.part_of(entry)))

    def give_up_gathering(self) -> None:
        """What was gathered in advance, and not needed, is dropped."""
        if self._gathering is not None:
            self._gathering[0].wait()
            self._gathering = None

    # ----- gradients ----------------------------------------------------------------------------------------------

    def _hook(self, number: int) -> Callable[[Tensor], None]:
        return lambda _: self._has_gradient(number)

    def _has_gradient(self, number: int) -> None:
        self._group._engine.progress()  # the sums of the unit behind this one are on their way
        self._ready.add(number)
        wanted = [at for at, entry in enumerate(self.entries) if entry.sharded.requires_grad]
        if len(self._ready) == len(wanted):
            self.after_backward()

    def after_backward(self) -> None:
        """All gradients of the unit that will come are there."""
        self._ready.clear()
        if self.syncs_gradients:
            self._begin_adding_up()
        if self.reshard_after_backward:
            self.give_up()
        self.finished(self)

    def _begin_adding_up(self) -> None:
        entries = [entry for entry in self.entries if entry.whole is not None and entry.whole.grad is not None]
        if not entries:
            return
        self.finish_adding_up()
        with no_grad():
            dtype = self.policy.reduce_dtype or common_dtype([entry.whole.grad.dtype for entry in entries])
            given, received = (self._rows(entries, count, dtype) for count in (self.size, 1))
            for number, entry in enumerate(entries):
                grad = entry.whole.grad
                for row in range(self.size):
                    size, start = Shard.local_shard_size_and_offset(entry.shape[entry.dim], self.size, row)
                    given.put(row, number, grad.narrow(entry.dim, start, size), entry.dim)
                entry.whole.grad = None
            if self.hook is not None and self._replicas is None:
                self.hook(given.memory.view(-1), received.memory.view(-1))
                self._sending = _Sending(Work(), received, entries)
                return
            work = begun(
                "reduce_scatter",
                self._group._engine,
                [received.memory, given.memory],
                lambda engine, arrays: engine.reduce_scatter(
                    arrays[0], list(arrays[1].reshape(self.size, -1)), ReduceOp.SUM
                ),
                1,
            )
            self._sending = _Sending(work, received, entries)

    def finish_adding_up(self) -> None:
        """Wait for the sums, and let the own parts of their means be gradients, or set out for the host."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        with no_grad(), self._beside():
            sending.work.wait()
            self._make_means(sending.received.memory)
            if self.offload is None:
                _add_gradients(sending.received, sending.entries, copy=True)
            else:
                self._arriving.append((self.offload.sent_to_host(sending.received), sending.entries))

    def _make_means(self, sums: Tensor) -> None:
        """Add up over replicas too, and divide; a hook does that itself."""
        count, replicas = self.size, self._replicas if self.reduces_over_replicas else None
        if self.hook is not None:
            if replicas is not None:
                self.hook(sums.view(-1))
            return
        if replicas is not None:
            _calls.all_reduce(sums, group=replicas)
            count *= replicas.size()
        sums.div_(self.divide_factor or count)

    def take_what_arrived(self) -> None:
        """Wait for the gradients that go to the host."""
        arriving, self._arriving = self._arriving, []
        with no_grad():
            for each, entries in arriving:
                _add_gradients(each.wait(), entries, copy=False)


def _add_gradients(rows: Rows, entries: list[Entry], copy: bool) -> None:
    """Add what was received to the gradients of the parameters, which become parts of it unless `copy`."""
    for number, entry in enumerate(entries):
        local = entry.sharded._local_tensor
        part = rows.part(0, number).narrow(entry.dim, 0, local.shape[entry.dim])
        grad = part.to(local.dtype, copy=copy).contiguous()
        local.grad = grad if local.grad is None else local.grad.add_(grad)


def _joint_mesh(outer: DeviceMesh, inner: DeviceMesh) -> DeviceMesh:
    """The mesh with the dimensions of two, which are parts of one."""
    root = outer._get_root_mesh()
    names = (outer.mesh_dim_names, inner.mesh_dim_names)
    if inner._get_root_mesh() is not root or names[0] is None or names[1] is None:
        raise ValueError(
            "FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh: make one by "
            f"init_device_mesh with mesh_dim_names, and take both from it. They are {outer} and {inner}"
        )
    return root[names[0] + names[1]]


def _fill(whole: Tensor, pieces: list[Tensor], dim: int) -> None:
    """Write the parts of all processes into the memory of a whole parameter. Its version does not change: what a graph
    has saved of it has the same elements again.
    """
    target, index = whole._array, (slice(None),) * dim
    step = pieces[0].shape[dim]
    for number, piece in enumerate(pieces):
        start = number * step
        count = min(step, target.shape[dim] - start)
        if count <= 0:
            break
        target[(*index, slice(start, start + count))] = piece._array[(*index, slice(0, count))]
