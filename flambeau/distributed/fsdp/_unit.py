"""A unit of `fully_shard`: parameters that are gathered and given up together.

At rest each process has a part of every parameter, a `DTensor`. Before the forward pass, and again before the backward
pass, the parts of all are gathered into whole parameters, which take their places in the modules. When all gradients of
a unit are there, they are added up, each process gets its part of the sums, and the whole parameters are given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._core.tensor import Tensor
from ..._ops.shape.join import cat
from ...autograd.grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import _calls
from ..device_mesh import DeviceMesh
from ..reductions import ReduceOp
from ..tensor._dtensor import made
from ..tensor._layout import Layout
from ..tensor.placement_types import Placement, Replicate, Shard
from ._policies import MixedPrecisionPolicy
from ._room import Room, padded, parts_for


@dataclass
class Entry:
    """One parameter: where it is used, how it is cut, and the whole while that is there."""

    owners: list[tuple[Module, str]]
    dim: int
    whole: Parameter | None = None
    spread: Any = None
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

    work: Any
    received: Tensor
    entries: list[Entry]
    sizes: list[int] = field(default_factory=list)


class Unit:
    """Parameters that come and go together."""

    def __init__(
        self, entries: list[Entry], mesh: DeviceMesh, policy: MixedPrecisionPolicy, reshard_after_forward: bool
    ) -> None:
        self.entries = entries
        self.mesh = mesh
        self.policy = policy
        self.reshard_after_forward = reshard_after_forward
        self.reshard_after_backward = True
        self.unshard_in_backward = True
        self.syncs_gradients = True
        self.reduces_over_replicas = True
        self.divide_factor: float | None = None
        self.is_whole = False
        self._group = mesh.get_group(mesh.ndim - 1)
        self._replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self._room: Room | None = None
        self._gathering: tuple[Any, Tensor, list[int]] | None = None
        self._sending: _Sending | None = None
        self._ready: set[int] = set()
        self.finished: Callable[[Unit], None] = lambda unit: None
        """Called when all gradients of the unit are on their way."""

    @property
    def size(self) -> int:
        """Over how many processes a parameter is cut."""
        return self._group.size()

    def placements(self, dim: int) -> tuple[Placement, ...]:
        """How a parameter is spread."""
        return (Replicate(), Shard(dim)) if self.mesh.ndim == 2 else (Shard(dim),)

    def spread(self) -> None:
        """Cut the parameters, of which all processes have the same, and keep the own parts."""
        for entry in self.entries:
            param = entry.present()
            layout = Layout(tuple(param.shape), self.mesh, self.placements(entry.dim))
            own = param.detach()
            size, start = layout.extents(entry.dim)
            part = own.narrow(entry.dim, start, size).clone().contiguous()
            entry.spread = Parameter(made(part, layout), param.requires_grad)
            entry.put(entry.spread)

    # ----- whole parameters ---------------------------------------------------------------------------------------

    def begin_gathering(self) -> None:
        """Start to gather the parts of all processes, unless they are here or on their way."""
        if self.is_whole or self._gathering is not None:
            return
        with no_grad():
            parts = []
            for entry in self.entries:
                entry.spread = entry.present()
                local = entry.spread._local_tensor.detach()
                if local.is_meta:
                    raise RuntimeError(
                        "parameters of a fully_shard module are on the meta device: call module.to_empty(device) and "
                        "initialise them before the forward pass"
                    )
                step = -(-entry.spread.shape[entry.dim] // self.size)
                parts.append(padded(local.to(self._dtype_of(entry)), entry.dim, step).reshape(-1))
            given = parts[0] if len(parts) == 1 else cat(_of_one_dtype(parts))
            received = given.new_empty((self.size, given.numel()))
            work = _calls.all_gather_into_tensor(received, given, self._group, async_op=True)
            self._gathering = work, received, [part.numel() for part in parts]

    def gather(self) -> None:
        """Put whole parameters into the modules."""
        if self.is_whole:
            return
        self.begin_gathering()
        assert self._gathering is not None
        work, received, sizes = self._gathering
        self._gathering = None
        work.wait()
        self._make_room()
        with no_grad():
            start = 0
            for entry, size in zip(self.entries, sizes, strict=True):
                whole = entry.whole
                assert whole is not None
                shape = list(whole.shape)
                shape[entry.dim] = -(-shape[entry.dim] // self.size)
                pieces = received[:, start : start + size].reshape(self.size, *shape)
                _fill(whole, pieces, entry.dim)
                whole.requires_grad_(entry.spread.requires_grad)
                entry.put(whole)
                start += size
        self.is_whole = True

    def _dtype_of(self, entry: Entry) -> Any:
        own = entry.spread.dtype
        wanted = self.policy.param_dtype
        return wanted if wanted is not None and own.is_floating_point else own

    def _make_room(self) -> None:
        """Memory for the whole parameters, at addresses that stay."""
        if self._room is not None:
            return
        from ..._core.kind import kind_of

        forms = [
            (tuple(entry.spread.shape), kind_of(self._dtype_of(entry), entry.spread._local_tensor._kind.device))
            for entry in self.entries
        ]
        self._room = Room(forms)
        for number, (entry, tensor) in enumerate(zip(self.entries, self._room.tensors, strict=True)):
            entry.whole = Parameter(tensor, entry.spread.requires_grad)
            if entry.spread.requires_grad:
                entry.whole.register_post_accumulate_grad_hook(self._hook(number))

    def give_up(self) -> None:
        """Put the parts back into the modules, and give up the memory of the whole parameters."""
        self.give_up_gathering()
        if not self.is_whole:
            return
        for entry in self.entries:
            entry.put(entry.spread)
        assert self._room is not None
        self._room.release()
        self.is_whole = False

    def take_back(self) -> None:
        """Keep what was changed in the whole parameters: each process takes its parts."""
        with no_grad():
            for entry in self.entries:
                assert entry.whole is not None
                local, layout = entry.spread._local_tensor, entry.spread._layout
                size, start = layout.extents(entry.dim)
                local.detach().copy_(entry.whole.narrow(entry.dim, start, size))

    def give_up_gathering(self) -> None:
        """What was gathered in advance, and not needed, is dropped."""
        if self._gathering is not None:
            self._gathering[0].wait()
            self._gathering = None

    # ----- gradients ----------------------------------------------------------------------------------------------

    def _hook(self, number: int) -> Callable[[Tensor], None]:
        return lambda _: self._has_gradient(number)

    def _has_gradient(self, number: int) -> None:
        self._ready.add(number)
        wanted = [at for at, entry in enumerate(self.entries) if entry.spread.requires_grad]
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
            rows: list[list[Tensor]] = [[] for _ in range(self.size)]
            for entry in entries:
                assert entry.whole is not None
                grad = entry.whole.grad
                assert grad is not None
                wanted = self.policy.reduce_dtype
                for row, part in zip(rows, parts_for(grad.to(wanted or grad.dtype), entry.dim, self.size), strict=True):
                    row.append(part.reshape(-1))
                entry.whole.grad = None
            sizes = [each.numel() for each in rows[0]]
            given = [row[0] if len(row) == 1 else cat(_of_one_dtype(row)) for row in rows]
            received = given[0].new_empty(given[0].shape)
            work = _calls.reduce_scatter(received, given, ReduceOp.SUM, self._group, async_op=True)
            self._sending = _Sending(work, received, entries, sizes)

    def finish_adding_up(self) -> None:
        """Wait for the sums, and add the own parts of their means to the gradients of the parameters."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        sending.work.wait()
        count = self.size
        with no_grad():
            total = sending.received
            if self._replicas is not None and self.reduces_over_replicas:
                _calls.all_reduce(total, group=self._replicas)
                count *= self._replicas.size()
            total = total / (self.divide_factor or count)
            start = 0
            for entry, size in zip(sending.entries, sending.sizes, strict=True):
                local = entry.spread._local_tensor
                shape = list(local.shape)
                shape[entry.dim] = -(-entry.spread.shape[entry.dim] // self.size)
                part = total[start : start + size].reshape(shape).narrow(entry.dim, 0, local.shape[entry.dim])
                grad = part.to(local.dtype).clone()
                local.grad = grad if local.grad is None else local.grad.add_(grad)
                start += size


def _of_one_dtype(tensors: list[Tensor]) -> list[Tensor]:
    """Tensors that go into one message: the widest dtype among them is that of all."""
    if all(each.dtype is tensors[0].dtype for each in tensors):
        return tensors
    from ..._dispatch.arguments.promotion import result_type_of

    common = result_type_of(*tensors)
    return [each.to(common) for each in tensors]


def _fill(whole: Parameter, pieces: Tensor, dim: int) -> None:
    """Write the parts of all processes into the memory of a whole parameter. Its version does not change: what a graph
    has saved of it has the same elements again.
    """
    target, given = whole._array, pieces._array
    step = pieces.shape[dim + 1]
    for number in range(pieces.shape[0]):
        start = number * step
        count = min(step, target.shape[dim] - start)
        if count <= 0:
            break
        index = (slice(None),) * dim
        target[(*index, slice(start, start + count))] = given[number][(*index, slice(0, count))]
