"""Copies of a module, one for each device, whose gradients arrive at the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..._core.device import device
from ..._core.tensor import Tensor
from ..modules.module import Module
from . import comm
from ._devices import DeviceLike, as_device
from ._functions import Broadcast

__all__ = ["replicate"]

T = TypeVar("T", bound=Module)


def replicate(network: T, devices: Sequence[DeviceLike], detach: bool = False) -> list[T]:
    """A replica of `network` on each device, the first of which must hold the network itself.

    Parameters of replicas are results of the original's: they are attributes, not parameters, and gradients flow
    through them, unless `detach` forbids it. Buffers of the first replica are the original's own.

    Args:
        network (T): the module.
        devices (sequence of DeviceLikes): the devices.
        detach (bool): whether gradients of the replicas do not flow back. Default: `False`.

    Returns:
        a module for each device.

    Example:
        >>> len(torch.nn.parallel.replicate(torch.nn.Linear(2, 2), ["cpu", "cpu"]))
        2
    """
    places = [as_device(each) for each in devices]
    if not places:
        return []
    tensors = list(dict.fromkeys((*network.parameters(), *network.buffers())))
    followed = [each for each in tensors if each.requires_grad and not detach]
    others = [each for each in tensors if not each.requires_grad or detach]
    copies = _copies(followed, others, places)
    modules = list(network.modules())
    replicas: list[dict[Any, Any]] = [
        {module: module._replicate_for_data_parallel() for module in modules} for _ in places
    ]
    for made, copy in zip(replicas, copies, strict=True):
        for module, replica in made.items():
            _fill(replica, module, made, copy)
    return [made[network] for made in replicas]


def _copies(followed: list[Tensor], others: list[Tensor], places: list[device]) -> list[dict[Tensor, Tensor]]:
    """For each device where to find what there takes the place of a tensor."""
    result: list[dict[Tensor, Tensor]] = [{} for _ in places]
    if others:
        for copy, tensors in zip(result, comm.broadcast_coalesced(others, places), strict=True):
            copy.update(zip(others, tensors, strict=True))
    if followed:
        outputs = Broadcast.apply(places, *followed)
        for number, copy in enumerate(result):
            copy.update(zip(followed, outputs[number * len(followed) :], strict=False))
    return result


def _fill(replica: Any, module: Module, made: dict[Any, Any], copy: dict[Tensor, Tensor]) -> None:
    """Give the replica of `module` its members: replicas of modules, copies of tensors."""
    for name, child in module._modules.items():
        if child is None:
            replica._modules[name] = None
        else:
            setattr(replica, name, made[child])
    for name, parameter in module._parameters.items():
        if parameter is None:
            replica._parameters[name] = None
        else:
            setattr(replica, name, copy[parameter])
    for name, buffer in module._buffers.items():
        if buffer is None:
            replica._buffers[name] = None
        else:
            setattr(replica, name, copy[buffer])
