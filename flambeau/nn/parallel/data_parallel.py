"""`DataParallel`: one module, several devices, each with its part of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from ..._core.device import device
from ...autograd.grad_mode import is_grad_enabled
from ..modules.module import Module
from ._devices import DeviceLike, all_indices, as_device, available_type, index_of
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


class DataParallel(Module, Generic[T]):
    """Runs a module on several devices at once: each computes a part of the batch, and the results are joined.

    In each forward pass the module, which must be on the first of `device_ids`, is copied to the others; gradients are
    summed into it. On a machine with only a CPU the module is just called. What a replica keeps on itself during a pass
    is lost with it, except in the buffers of the first one, which are the module's own.

    Args:
        module (Module): the module to run.
        device_ids (sequence of devices, optional): the devices to use; None means all.
        output_device (device, optional): where results go; None means the first of `device_ids`.
        dim (int): the dimension of the batch. Default: `0`.

    Shape:
        input: what the module takes
        output: what the module returns for the whole batch

    Example:
        >>> model = flambeau.nn.DataParallel(flambeau.nn.Linear(2, 3))
        >>> model.module
        Linear(in_features=2, out_features=3, bias=True)
    """

    device_ids: list[int]

    def __init__(
        self,
        module: T,
        device_ids: Sequence[DeviceLike] | None = None,
        output_device: DeviceLike | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids = []
        if available_type() is None:
            return
        self.dim = dim
        self.device_ids, self.output_device = _chosen(device_ids, output_device)
        self.src_device_obj = as_device(self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module for the whole batch."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts:  # a module without arguments runs once
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        outputs = self.parallel_apply(replicas, parts, named)
        return self.gather(outputs, self.output_device)

    def replicate(self, module: T, device_ids: Sequence[DeviceLike]) -> list[T]:
        """The copies of the module that run."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[DeviceLike]) -> Any:
        """The arguments of each copy."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[T], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """The results of the copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: DeviceLike) -> Any:
        """The results as one."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[DeviceLike] | None = None,
    output_device: DeviceLike | None = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Call `module` on several devices at once; `DataParallel` as a function. `inputs`: one argument or a tuple.

    Args:
        module (Module): the module.
        inputs: one argument, or a tuple of them.
        device_ids (sequence of DeviceLikes, optional): the devices; None means all.
        output_device (DeviceLike, optional): where the result lies; None means the first device.
        dim (int): the dimension along which tensors are cut and joined. Default: `0`.
        module_kwargs: keyword arguments of the module.

    Returns:
        what the module returns for all of `inputs`.
    """
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    if available_type() is None:
        raise RuntimeError("device type could not be determined: data_parallel needs several devices, and finds a CPU")
    indices, output = _chosen(device_ids, output_device)
    _check_place(module, as_device(indices[0]))
    parts, named = scatter_kwargs(inputs, module_kwargs, indices, dim)
    if not parts:
        parts, named = ((),), ({},)
    if len(indices) == 1:
        return module(*parts[0], **named[0])
    used = indices[: len(parts)]
    outputs = parallel_apply(replicate(module, used, not is_grad_enabled()), parts, named, used)
    return gather(outputs, output, dim)


def _chosen(device_ids: Sequence[DeviceLike] | None, output_device: DeviceLike | None) -> tuple[list[int], int]:
    """The numbers of the devices to run on, and of the one for the results."""
    indices = all_indices() if device_ids is None else [index_of(each) for each in device_ids]
    if not indices:
        raise RuntimeError("no available devices were found: device_ids is empty")
    return indices, indices[0] if output_device is None else index_of(output_device)


def _check_place(module: Module, place: device) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != place:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {place} (device_ids[0]) but found one of them "
                f"on device: {tensor.device}"
            )
