"""`DTensor`: a tensor of which each process has a part.

It has the shape of the whole. Ops on it run on the parts, by rules (`_rules/`) that say what each process computes, and
what has to be moved before. Autograd follows the parts: the gradient of a part is that part of the gradient, and where
all processes have the same, all have the same gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..._core.arrays.abstract import AbstractArray
from ..._core.modes import THREAD
from ..._core.names.same_as import same_as
from ..._core.size import contiguous_byte_strides
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor, new
from ..._dispatch.op import Op
from ..._dispatch.public.overrides import DisableTorchFunctionSubclass
from ...func._level import Level, Wrapper
from ..device_mesh import DeviceMesh
from ._layout import Layout, normalised
from ._moving import added_up_in_backward, moved, refuse_summands
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor"]

_READ = (
    "a DTensor has no elements of its own, only a part on each process: call full_tensor() for the whole, or "
    "to_local() for the part of this process"
)


class _NoElements(AbstractArray):
    """Shape, strides and type of the whole tensor."""

    __slots__ = ()


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_READ)


for _name in [
    "__array_ufunc__",
    "__array_function__",
    "item",
    "tolist",
    "astype",
    "take",
    "nonzero",
    "argsort",
    "searchsorted",
    "tobytes",
    "copy",
    "fill",
    "__bool__",
    "__int__",
    "__float__",
    "__complex__",
    "__index__",
    "__iter__",
    "__getitem__",
    "__setitem__",
]:
    setattr(_NoElements, _name, _refuse)


class DTensor(Wrapper):
    """A tensor that is distributed over the processes of a mesh; made by `distribute_tensor` and `from_local`.

    Args:
        *args: not for users: make one by `distribute_tensor` or `DTensor.from_local`.
        **kwargs: not for users.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> x = dist.tensor.DTensor.from_local(torch.ones(2), mesh, [dist.tensor.Shard(0)])
        >>> x.shape, x.sum().full_tensor()
        (torch.Size([4]), tensor(4.))
    """

    if TYPE_CHECKING:
        _local_tensor: Tensor
        _layout: Layout
        _shared: dict[tuple[int, ...], tuple[Any, Tensor]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a DTensor is made by distribute_tensor or DTensor.from_local, not by its class")

    # ----- what it is ---------------------------------------------------------------------------------------------

    device_mesh: DeviceMesh = same_as("_layout.mesh", "The processes that have it.")

    @property
    def placements(self) -> tuple[Placement, ...]:
        """What they have of it, for each dimension of the mesh."""
        return self._layout.placements

    value: Tensor = same_as("_local_tensor", "The part of this process.")

    def _text(self) -> str:
        local = self._local_tensor
        shown = repr(local.item()) if not local.ndim and not local.is_meta else repr(local.detach())
        return f"DTensor(local_tensor={shown}, device_mesh={self.device_mesh}, placements={self.placements})"

    # ----- its parts ----------------------------------------------------------------------------------------------

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: tuple[int, ...] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor whose part on this process is `local_tensor`.

        Without `shape`, all parts are taken to be of the same size. `run_check`: the first process's tensor is that
        of all where they are to have the same.
        """
        mesh = mesh_or_current(device_mesh)
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(f"the local_tensor argument only accepts torch.Tensor but got {type(local_tensor)}")
        places = normalised(placements, local_tensor.ndim, mesh, Replicate())
        if (shape is None) != (stride is None):
            raise RuntimeError("shape and stride must be given together, or neither of them")
        if shape is None:
            sizes = list(local_tensor.shape)
            for number, each in enumerate(places):
                if isinstance(each, Shard):
                    sizes[each.dim] *= mesh.size(number)
            shape = sizes
        layout = Layout(tuple(shape), mesh, places)
        if run_check:
            _check_shape(local_tensor, layout)
            _take_over(local_tensor, layout)
        return made(local_tensor.view_as(local_tensor), layout)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The part of this process. `grad_placements` says what the gradients of the parts are, if not alike."""
        local = self._local_tensor
        if grad_placements is not None:
            groups = [
                self.device_mesh.get_group(number)
                for number, each in enumerate(grad_placements)
                if isinstance(each, Partial) and not isinstance(self.placements[number], Partial)
            ]
            if groups:
                return added_up_in_backward(local, groups)
        return local.view_as(local) if THREAD.modes.grad else local

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, on every process."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """This tensor with other placements. It has arrived when the call returns, also with `async_op`."""
        if forward_dtype is not None or backward_dtype is not None:
            raise NotImplementedError("redistribute moves tensors in their own dtype: convert with .to() before")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        places = normalised(placements, self.ndim, self.device_mesh, Replicate())
        for before, after in zip(self.placements, places, strict=True):
            if isinstance(after, Partial) and before != after:
                raise refuse_summands(before, after)
        return self._redistributed(places)

    def _redistributed(self, placements: tuple[Placement, ...]) -> DTensor:
        target = Layout(self._layout.shape, self.device_mesh, placements)
        if target.placements == self.placements:
            return self
        return made(moved(self._local_tensor, self._layout, target), target, self.stride())

    def _whose_gradient_is_added_up(self, numbers: tuple[int, ...]) -> Tensor:
        """The part of this process for ops whose gradients are parts of a sum along some dimensions of the mesh.

        All ops that use it share one, so that their gradients are added here before they are added over processes.
        """
        local = self._local_tensor
        if not numbers or not (local.requires_grad and THREAD.modes.grad):
            return local
        made_by = local.grad_fn
        shared = vars(self).setdefault("_shared", {})
        if made_by is None or shared.get(numbers, (None,))[0] is not made_by:  # of a leaf, each graph has its own
            groups = [self.device_mesh.get_group(each) for each in numbers]
            shared[numbers] = made_by, added_up_in_backward(local, groups)
        found: Tensor = shared[numbers][1]
        return found

    # ----- ops ----------------------------------------------------------------------------------------------------

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        with DisableTorchFunctionSubclass():
            return SLOTS.run_function_on_mesh(func, args, kwargs or {})

    def _before_change(self) -> Tensor:
        return self.clone() if THREAD.modes.grad and self.requires_grad else self

    def _filled_alike(self, shape: Sequence[int], kind: Any, value: Any) -> Tensor:
        """A new tensor: distributed alike if it has the same shape, else the same for all."""
        from ..._ops.create.constants import filled

        alike = tuple(shape) == tuple(self.shape)
        layout = self._layout.of_gradient() if alike else _everywhere(self.device_mesh, tuple(shape))
        return made(filled(layout.local_shape(), kind, value), layout)

    def _become(self, other: Tensor) -> None:
        assert isinstance(other, DTensor)
        self._local_tensor, self._layout, self._array = other._local_tensor, other._layout, other._array

    # ----- autograd, which follows the parts ----------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self._local_tensor.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._local_tensor.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` and return the tensor."""
        self._local_tensor.requires_grad_(requires_grad)
        return self

    grad_fn: Any = same_as("_local_tensor.grad_fn")
    is_leaf: bool = same_as("_local_tensor.is_leaf")

    @property
    def grad(self) -> Tensor | None:
        grad = self._local_tensor.grad
        return None if grad is None else made(grad, self._layout.of_gradient())

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, DTensor):
            raise RuntimeError("the gradient of a DTensor is a DTensor: distribute_tensor makes one")
        self._local_tensor.grad = (
            None if value is None else value._redistributed(self._layout.of_gradient().placements).value
        )

    @grad.deleter
    def grad(self) -> None:
        self._local_tensor.grad = None

    _grad = grad  # what optimizers reach for

    @property
    def data(self) -> Tensor:
        return made(self._local_tensor.data, self._layout, self.stride())

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, DTensor):
            raise RuntimeError("the data of a DTensor is a DTensor: distribute_tensor makes one")
        self._local_tensor.data = value._local_tensor.detach()
        self._layout, self._array, self._kind = value._layout, value._array, value._kind

    def backward(
        self, gradient: Tensor | None = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Compute the gradients of the leaves that this tensor depends on."""
        given = (
            gradient._redistributed(self._layout.of_gradient().placements).value
            if isinstance(gradient, DTensor)
            else None
        )
        listed = [inputs] if isinstance(inputs, Tensor) else inputs
        own = listed and [each._local_tensor if isinstance(each, DTensor) else each for each in listed]
        self._start_of_backward().backward(given, retain_graph, create_graph, own)

    def _start_of_backward(self) -> Tensor:
        """What this process differentiates: its part, or its share of a mean."""
        start = self._local_tensor
        for number, each in enumerate(self.placements):
            if each.is_partial("avg"):
                start = start / self.device_mesh.size(number)
        return start

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `.grad`."""
        self._local_tensor.retain_grad()

    retains_grad: bool = same_as("_local_tensor.retains_grad")

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook(grad)` whenever this tensor's gradient is computed; a returned tensor replaces it."""
        layout = self._layout.of_gradient()

        def on_part(grad: Tensor) -> Any:
            changed = hook(made(grad, layout))
            return changed._redistributed(layout.placements).value if isinstance(changed, DTensor) else changed

        return self._local_tensor.register_hook(on_part)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> Any:
        """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
        return self._local_tensor.register_post_accumulate_grad_hook(lambda _: hook(self))

    # ----- what reads elements ------------------------------------------------------------------------------------

    def item(self) -> Any:
        """The number of a tensor with one element, the same on every process."""
        return self.full_tensor().item()

    def __bool__(self) -> bool:
        return bool(self.full_tensor())

    def tolist(self) -> Any:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got DTensor: {_READ}")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(f".numpy() is not supported for tensor subclasses: {_READ}")

    def data_ptr(self) -> int:
        return self._local_tensor.data_ptr()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = made(self._local_tensor.detach().clone(), self._layout, self.stride())
            copied.requires_grad_(self.requires_grad)
            if vars(self).get("_is_param"):
                vars(copied)["_is_param"] = True
            memo[id(self)] = copied
        return memo[id(self)]

    def __hash__(self) -> int:
        return id(self)


class MeshLevel(Level):
    """Runs ops on the parts that this process has. It is entered while a public function is given a `DTensor`."""

    def __init__(self) -> None:
        self.number, self.running = 0, True

    def has(self, value: Any) -> bool:
        return isinstance(value, DTensor)

    def front(self, tensor: Any) -> Any:
        return tensor._local_tensor if isinstance(tensor, DTensor) else tensor

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        return SLOTS.run_op_on_mesh(op, args)


MESH_LEVEL = MeshLevel()


def made(local: Tensor, layout: Layout, strides: Sequence[int] | None = None) -> DTensor:
    """The tensor whose part on this process is `local`."""
    tensor: DTensor = new(DTensor)
    kind = local._kind
    array_type = kind.dtype.numpy
    item = array_type.itemsize
    steps = contiguous_byte_strides(layout.shape, item) if strides is None else tuple([each * item for each in strides])
    tensor._array = _NoElements(layout.shape, steps, array_type)
    tensor._kind = kind
    tensor._counter = None if local._counter is None else [0, None]
    tensor._output_nr = 0
    tensor._extra = None
    tensor._local_tensor = local
    tensor._layout = layout
    tensor.level = MESH_LEVEL
    return tensor


def mesh_or_current(given: DeviceMesh | None) -> DeviceMesh:
    """The mesh that is given, or the one whose `with` block this is."""
    if given is not None:
        return given
    from ..device_mesh import current_mesh

    return current_mesh()


def _everywhere(mesh: DeviceMesh, shape: tuple[int, ...]) -> Layout:
    return Layout(shape, mesh, tuple([Replicate()] * mesh.ndim))


def _check_shape(local: Tensor, layout: Layout) -> None:
    if tuple(local.shape) != layout.local_shape():
        raise ValueError(
            f"the part of this process should have the shape {list(layout.local_shape())}, and has {list(local.shape)}"
        )


def _take_over(local: Tensor, layout: Layout) -> None:
    from .. import _calls

    for number, each in enumerate(layout.placements):
        if isinstance(each, Replicate):
            group = layout.mesh.get_group(number)
            _calls.broadcast(local.detach(), group=group, group_src=0)
