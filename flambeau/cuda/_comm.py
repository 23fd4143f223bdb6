"""Moving tensors between the CUDA devices of one process. What one device is asked for twice is copied there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.device import device as Device
from .._core.tensor import Tensor
from ._ordinals import place_of


def broadcast(tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Sequence[Tensor] | None = None) -> Any:
    """A tensor on each of the devices; on its own it is itself."""
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got {devices} and {out}")
    if out is not None:
        return tuple([each.copy_(tensor) for each in out])
    assert devices is not None
    first = tensor.to(place_of(devices[0]))
    return tuple([first if n == 0 else first.to(place_of(each), copy=True) for n, each in enumerate(devices)])


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760) -> Any:
    """Several tensors on each of the devices."""
    found = [broadcast(each, devices) for each in tensors]
    return [tuple([copies[n] for copies in found]) for n in range(len(devices))]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of several devices, on one of them."""
    shape = inputs[0].shape
    for n, each in enumerate(inputs):
        if each.shape != shape:
            raise ValueError(f"input {n} has invalid size: got {tuple(each.shape)}, but expected {tuple(shape)}")
    place = place_of(destination)
    result = inputs[0].to(place, copy=True)
    for each in inputs[1:]:
        result.add_(each.to(place))
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> Any:
    """The sums of several tensors each."""
    return tuple([reduce_add(each, destination) for each in zip(*inputs, strict=True)])


def scatter(
    tensor: Tensor, devices: Sequence[Any] | None = None, chunk_sizes: Sequence[int] | None = None, dim: int = 0,
    streams: Any = None, *, out: Sequence[Tensor] | None = None,
) -> Any:  # fmt: skip
    """Parts of a tensor, each on one of the devices."""
    if out is not None:
        sizes = [each.shape[dim] for each in out]
        return tuple([to.copy_(part) for to, part in zip(out, tensor.split(sizes, dim), strict=True)])
    assert devices is not None
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple([part.to(place_of(each)) for part, each in zip(parts, devices, strict=False)])


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Tensors of several devices side by side on one."""
    from .. import cat

    if out is not None:
        return out.copy_(cat([each.to(out.device) for each in tensors], dim))
    place = Device("cpu") if str(destination) == "cpu" or destination == -1 else place_of(destination)
    return cat([each.to(place) for each in tensors], dim)
