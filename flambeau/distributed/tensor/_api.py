"""Tensors and modules distributed over the processes of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.device import strided
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create import constants
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import _calls
from ..device_mesh import DeviceMesh
from ._dtensor import DTensor, made, mesh_or_current
from ._layout import Layout, normalised
from ._moving import move
from .placement_types import Partial, Placement, Replicate

__all__ = ["distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Distribute a tensor, which the first process of the mesh has, over all of them.

    `src_data_rank=None`: each process takes its part of the tensor that it has itself, and nothing is sent.

    Args:
        tensor (Tensor): the tensor.
        device_mesh (DeviceMesh, optional): the processes; None means all.
        placements (sequence of Placements, optional): what the processes have along each dimension of the mesh; None
            means everything.
        src_data_rank (int, optional): the rank whose values count; None takes those of each process, and sends
            nothing. Default: `0`.

    Returns:
        DTensor: the distributed tensor.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> x = dist.tensor.distribute_tensor(torch.arange(4), mesh, [dist.tensor.Shard(0)])
        >>> x.to_local(), x.full_tensor()
        (tensor([0, 1]), tensor([0, 1, 2, 3]))
    """
    mesh = mesh_or_current(device_mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tuple(placements or ()) != tensor.placements:
            raise ValueError("the tensor is sharded already, in another way: redistribute changes that")
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    places = normalised(placements, tensor.ndim, mesh, Replicate())
    layout = Layout(tuple(tensor.shape), mesh, places)
    data = tensor.detach()
    if not data.is_meta:
        if src_data_rank is not None and mesh.size() > 1:
            data = data.clone().contiguous()
            for number in range(mesh.ndim):
                _calls.broadcast(data, group=mesh.get_group(number), group_src=src_data_rank)
        data = move(data, Layout(layout.shape, mesh, tuple([Replicate()] * mesh.ndim)), _as_summands(layout))
        for number, each in enumerate(places):
            if each.is_partial("sum"):
                data = data / mesh.size(number)
        data = data.clone() if data._array.base is not None or data._array is tensor._array else data
    else:
        data = data.new_empty(layout.local_shape())
    return made(data, layout).requires_grad_(tensor.requires_grad) if tensor.requires_grad else made(data, layout)


def _as_summands(layout: Layout) -> Layout:
    """What can be cut out of a whole tensor: what is to be added up is taken by all."""
    return Layout(
        layout.shape,
        layout.mesh,
        tuple([Replicate() if isinstance(each, Partial) else each for each in layout.placements]),
    )


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Distribute the parameters of a module by `partition_fn`, all others to everybody; convert inputs and outputs.

    Args:
        module (Module): the module.
        device_mesh (DeviceMesh, optional): the processes; None means all.
        partition_fn (Callable, optional): `partition_fn(name, module, mesh)` distributes the parameters of each module
            below.
        input_fn (Callable, optional): `input_fn(module, inputs, mesh)` converts inputs.
        output_fn (Callable, optional): `output_fn(module, outputs, mesh)` converts outputs.

    Returns:
        Module: `module` itself.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> layer = dist.tensor.distribute_module(torch.nn.Linear(2, 2), mesh)
        >>> layer.weight.placements
        (Replicate(),)
    """
    mesh = mesh_or_current(device_mesh)
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError("distribute_module should only be called once on a module, but it has already been called")
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        replicate_rest(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    vars(module)["_distribute_module_applied"] = True
    return module


def replicate_rest(module: Module, mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
    """Distribute what a module itself has, and is not distributed yet: everybody gets it."""
    everywhere = [Replicate()] * mesh.ndim
    param: Any
    for key, param in module._parameters.items():
        if param is not None and not isinstance(param, DTensor):
            distributed = distribute_tensor(param.data, mesh, everywhere, src_data_rank=src_data_rank)
            module.register_parameter(key, Parameter(distributed, param.requires_grad))
    for key, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[key] = distribute_tensor(buffer, mesh, everywhere, src_data_rank=src_data_rank)


def _made_by(
    make: Callable[..., Tensor],
    size: tuple[Any, ...],
    options: dict[str, Any],
    mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    draws: bool = False,
) -> DTensor:
    """A tensor that each process makes its part of; random numbers are drawn for the whole."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    found = mesh_or_current(mesh)
    layout = Layout(shape, found, normalised(placements, len(shape), found, Replicate()))
    requires_grad = options.pop("requires_grad", False)
    options.setdefault("device", found.device_type)
    if draws:
        whole = make(shape, **options)
        local = move(whole, Layout(shape, found, tuple([Replicate()] * found.ndim)), _as_summands(layout))
    else:
        local = make(layout.local_shape(), **options)
    result = made(local, layout)
    return result.requires_grad_() if requires_grad else result


def zeros(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = strided,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A distributed tensor of zeros.

    Args:
        *size: the shape, as separate integers or as one tuple.
        requires_grad (bool): whether autograd records operations on it. Default: `False`.
        dtype: the dtype; None means the default dtype.
        layout: the layout; only `torch.strided`. Default: `torch.strided`.
        device_mesh (DeviceMesh, optional): the processes; None means all.
        placements (sequence of Placements, optional): what the processes have along each dimension of the mesh; None
            means everything.

    Returns:
        DTensor: the distributed tensor.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.zeros(4, device_mesh=mesh, placements=[dist.tensor.Shard(0)]).to_local()
        tensor([0., 0.])
    """
    options = {"dtype": dtype, "requires_grad": requires_grad}
    return _made_by(constants.zeros, size, options, device_mesh, placements)


@documented_like(zeros)
def ones(
    *size: Any, dtype: Any = None, layout: Any = strided, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A distributed tensor of ones.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.ones(4, device_mesh=mesh, placements=[dist.tensor.Shard(0)]).to_local()
        tensor([1., 1.])
    """
    options = {"dtype": dtype, "requires_grad": requires_grad}
    return _made_by(constants.ones, size, options, device_mesh, placements)


@documented_like(zeros)
def empty(
    *size: Any, dtype: Any = None, layout: Any = strided, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A distributed tensor whose elements are not set.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.empty(4, device_mesh=mesh, placements=[dist.tensor.Shard(0)]).to_local().shape
        torch.Size([2])
    """
    options = {"dtype": dtype, "requires_grad": requires_grad}
    return _made_by(constants.empty, size, options, device_mesh, placements)


@documented_like(zeros)
def full(
    size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = strided, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A distributed tensor with one value everywhere.

    Args:
        size: the shape, as separate integers or as one tuple.
        fill_value: the value.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.full((4,), 7.0, device_mesh=mesh, placements=[dist.tensor.Shard(0)]).to_local()
        tensor([7., 7.])
    """
    options = {"dtype": dtype, "requires_grad": requires_grad}
    return _made_by(
        lambda shape, **given: constants.full(shape, fill_value, **given), (size,), options, device_mesh, placements
    )


@documented_like(zeros)
def rand(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = strided,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A distributed tensor of the uniform numbers that one process would draw, if all have the same seed.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.rand(4, device_mesh=mesh, placements=[dist.tensor.Shard(0)]).to_local().shape
        torch.Size([2])
    """
    from ..._ops.random.draws import rand as make

    options = {"dtype": dtype, "requires_grad": requires_grad}
    return _made_by(make, size, options, device_mesh, placements, True)


@documented_like(zeros)
def randn(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = strided,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A distributed tensor of the normal numbers that one process would draw, if all have the same seed.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.randn(4, device_mesh=mesh, placements=[dist.tensor.Shard(0)]).to_local().shape
        torch.Size([2])
    """
    from ..._ops.random.draws import randn as make

    options = {"dtype": dtype, "requires_grad": requires_grad}
    return _made_by(make, size, options, device_mesh, placements, True)
