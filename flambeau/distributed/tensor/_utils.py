"""Sizes of a tensor's parts."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.tensor import Tensor
from ..device_mesh import DeviceMesh
from ._layout import Layout
from .placement_types import Placement, Shard

__all__ = ["compute_global_tensor_info", "compute_local_shape", "compute_local_shape_and_global_offset"]


def compute_local_shape(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[int, ...]:
    """The shape of this process's part."""
    return Layout(tuple(global_shape), mesh, tuple(placements)).local_shape()


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int],
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    skip_offset: bool = False,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins in the whole."""
    layout = Layout(tuple(global_shape), mesh, tuple(placements))
    return layout.local_shape(), () if skip_offset else layout.offsets()


def compute_global_tensor_info(
    tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """The shape and the strides of the whole, if all parts are as large as this one."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    for number, placement in enumerate(placements):
        if isinstance(placement, Shard):
            own = strides[placement.dim]
            strides = [
                step * mesh.size(number) if at != placement.dim and step >= own else step
                for at, step in enumerate(strides)
            ]
            shape[placement.dim] *= mesh.size(number)
    return shape, strides
