"""Tensors from one device to several, and back.

Devices are named as everywhere, or by their numbers among those of the type that there are several of.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._ops.shape.join import cat
from ...autograd.grad_mode import no_grad
from ._devices import DeviceLike, as_device

_BUFFER = 10485760


def broadcast(
    tensor: Tensor, devices: Iterable[DeviceLike] | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """The tensor on each of `devices`: itself where it is already, copies elsewhere. Or copied into each of `out`."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        for number, target in enumerate(out):
            _check_shape("broadcast", f"out[{number}]", target, tensor.shape)
        return tuple(target.copy_(tensor) for target in out)
    return tuple(tensor.to(as_device(each)) for each in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Iterable[DeviceLike], buffer_size: int = _BUFFER
) -> list[list[Tensor]]:
    """For each device a list of the tensors there. All are on the first one, whose list has the tensors themselves.

    The copies are outside any graph. `buffer_size` bounds what is sent in one piece; here every tensor is one.
    """
    places = [as_device(each) for each in devices]
    if not places:
        raise RuntimeError("broadcast_coalesced: expected at least one device to broadcast to")
    for number, tensor in enumerate(tensors):
        if tensor.device != places[0]:
            raise RuntimeError(
                f"All tensors must be on devices[0]: {places[0]}, but tensor number {number} is on {tensor.device}"
            )
    with no_grad():
        return [list(tensors), *([tensor.to(place) for tensor in tensors] for place in places[1:])]


def reduce_add(inputs: Sequence[Tensor], destination: DeviceLike | None = None) -> Tensor:
    """The sum of tensors from several devices on `destination`, where one of them must be."""
    place = as_device(destination)
    for number, tensor in enumerate(inputs):
        if tensor.shape != inputs[0].shape:
            got, expected = ("x".join(map(str, each.shape)) for each in (tensor, inputs[0]))
            raise ValueError(f"input {number} has invalid size: got {got}, but expected {expected}")
    own = next((number for number, tensor in enumerate(inputs) if tensor.device == place), None)
    if own is None:
        raise RuntimeError(
            "reduce_add expects destination to be on the same GPU with one of the tensors: destination is "
            f"{place}, the tensors are on {', '.join(str(each.device) for each in inputs)}"
        )
    if len(inputs) == 1:
        return inputs[0]
    first, *others = [inputs[own], *inputs[:own], *inputs[own + 1 :]]
    total = first + others[0].to(place)
    for tensor in others[1:]:
        total.add_(tensor.to(place))
    return total


def reduce_add_coalesced(
    inputs: Iterable[Iterable[Tensor]], destination: DeviceLike | None = None, buffer_size: int = _BUFFER
) -> tuple[Tensor, ...]:
    """The sums of the first tensors of all devices, of the second ones, and so on, outside any graph.

    `inputs` has a list for each device.

    `buffer_size` bounds what is sent in one piece; here every tensor is one.
    """
    with no_grad():
        return tuple(reduce_add(group, destination) for group in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Iterable[DeviceLike] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The tensor in pieces along `dim`, one on each of `devices`: of `chunk_sizes`, else of about one size.

    Or the pieces copied into the tensors of `out`, whose sizes say where it is cut.
    """
    if out is not None:
        for name, value in (("devices", devices), ("chunk_sizes", chunk_sizes)):
            if value is not None:
                raise RuntimeError(f"'{name}' must not be specified when 'out' is specified, but got {name}={value}")
        pieces = tensor.split([target.size(dim) for target in out], dim)
        return tuple(target.copy_(piece) for target, piece in zip(out, pieces, strict=True))
    places = [as_device(each) for each in devices or ()]
    if not places:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is None:
        pieces = tensor.chunk(len(places), dim)
    elif len(chunk_sizes) != len(places):
        raise RuntimeError(
            f"Expected devices and chunk_sizes to be of same length: {len(places)} != {len(chunk_sizes)}"
        )
    else:
        pieces = tensor.split(list(chunk_sizes), dim)
    return tuple(piece.to(place) for piece, place in zip(pieces, places, strict=False))


def gather(
    tensors: Iterable[Tensor], dim: int = 0, destination: DeviceLike | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The tensors of several devices joined along `dim`, on `destination` or in `out`."""
    pieces = list(tensors)
    if not pieces:
        raise RuntimeError("Expected at least one tensor to gather from")
    _check_joinable(pieces, dim)
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        shape = list(pieces[0].shape)
        shape[dim] = sum(piece.size(dim) for piece in pieces)
        _check_shape("gather", "out", out, shape)
        return out.copy_(cat([piece.to(out.device) for piece in pieces], dim))
    if destination == -1:
        warnings.warn(
            "Using -1 to represent CPU tensor is deprecated: name the device, as in destination='cpu'.",
            FutureWarning,
            stacklevel=2,
        )
    place = as_device(destination)
    return cat([piece.to(place) for piece in pieces], dim)


def _check_joinable(pieces: list[Tensor], dim: int) -> None:
    first = list(pieces[0].shape)
    if not -len(first) <= dim < len(first):
        raise RuntimeError(f"gather: dim {dim} is out of range for tensors of {len(first)} dimensions")
    for number, piece in enumerate(pieces):
        expected = list(first)
        if piece.dim() == len(first):
            expected[dim] = piece.size(dim)
        _check_shape("gather", f"input {number}", piece, expected)


def _check_shape(function: str, name: str, tensor: Tensor, expected: Sequence[int]) -> None:
    if list(tensor.shape) != list(expected):
        raise RuntimeError(
            f"{function}: {name} has invalid size: got {list(tensor.shape)}, but expected {list(expected)}"
        )
