"""`DeviceMesh`: processes in rows and columns, with a group for each of them."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.device import CPU
from .._core.tensor import Tensor, wrap
from ._world import (
    ProcessGroup,
    default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """An arrangement of ranks in one or more dimensions; all processes make it, those outside of it too.

    Along each dimension a process has a group: those that differ from it in that dimension alone.

    Args:
        device_type (str): "cpu" or "cuda".
        mesh: the ranks, as a nested list or a tensor.
        mesh_dim_names (tuple of strs, optional): the names of the dimensions.
        backend_override (tuple of Anys, optional): the backend of each dimension.

    Example:
        >>> mesh = dist.DeviceMesh("cpu", [0, 1], mesh_dim_names=("data",))
        >>> mesh.size(), mesh.get_local_rank()
        (2, 0)
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: tuple[Any, ...] | None = None,
        _groups: Sequence[ProcessGroup | None] | None = None,
        _root_mesh: DeviceMesh | None = None,
    ) -> None:
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        if not is_initialized():
            init_process_group()
        self.device_type = device_type
        ranks = mesh.numpy() if isinstance(mesh, Tensor) else np.asarray(mesh)
        self._ranks = ranks.astype(np.int32)
        if self._ranks.size > get_world_size() or len(np.unique(self._ranks)) != self._ranks.size:
            raise RuntimeError(
                f"a mesh has each rank once at most, and there are {get_world_size()}: {self._ranks.tolist()}"
            )
        # The groups of a mesh are of the same backend as that of all processes, so only the number is looked at.
        if backend_override is not None and len(backend_override) != self._ranks.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, "
                f"but got {len(backend_override)} and {self._ranks.ndim}."
            )
        if mesh_dim_names is not None and len(mesh_dim_names) != self._ranks.ndim:
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!, "
                f"found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{self._ranks.ndim}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root = _root_mesh
        self._parts: dict[tuple[str, ...], DeviceMesh] = {}
        self._groups = list(_groups) if _groups is not None else self._make_groups()

    def _make_groups(self) -> list[ProcessGroup | None]:
        """The group of this process along each dimension. All processes make all groups, in the same order."""
        found: list[ProcessGroup | None] = []
        for dim in range(self._ranks.ndim):
            own = None
            for row in np.moveaxis(self._ranks, dim, -1).reshape(-1, self._ranks.shape[dim]):
                ranks = [int(rank) for rank in row]
                whole = default_group()
                made = whole if ranks == get_process_group_ranks(whole) else new_group(ranks, sort_ranks=False)
                if get_rank() in ranks:
                    own = made
            found.append(own)
        return found

    @property
    def mesh(self) -> Tensor:
        """The ranks of the processes, as a tensor of the mesh's shape."""
        return wrap(self._ranks.copy(), CPU)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dimension."""
        return tuple(self._ranks.shape)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return self._ranks.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, in all or along a dimension."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process among all."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is; None if it is not in the mesh."""
        places = np.argwhere(self._ranks == get_rank())
        return [int(each) for each in places[0]] if len(places) else None

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                    "specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r}: the mesh has {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along a dimension."""
        found = self._groups[self._dim(mesh_dim)]
        if found is None:
            raise RuntimeError(f"rank {get_rank()} is not in the mesh {self._ranks.tolist()}")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of this process along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension."""
        return self.get_group(mesh_dim).rank()

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh, with these dimensions alone, in which this process is."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if names not in self._parts:
            dims = [self._dim(name) for name in names]
            place = self.get_coordinate() or [0] * self.ndim
            index = tuple(slice(None) if dim in dims else place[dim] for dim in range(self.ndim))
            kept = sorted(dims)
            part = np.transpose(self._ranks[index], [kept.index(dim) for dim in dims])
            self._parts[names] = DeviceMesh(
                self.device_type,
                part,
                mesh_dim_names=names,
                _groups=[self._groups[dim] for dim in dims],
                _root_mesh=self,
            )
        return self._parts[names]

    def _get_root_mesh(self) -> DeviceMesh:
        return self if self._root is None else self._root._get_root_mesh()

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """A mesh of one dimension with the same ranks."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flat",))
        root = self._get_root_mesh()
        if (name,) not in root._parts:
            whole, own = root._ranks, None
            kept = [root._dim(each) for each in self.mesh_dim_names or ()] or list(range(root.ndim))
            others = [dim for dim in range(root.ndim) if dim not in kept]
            for place in itertools.product(*(range(whole.shape[dim]) for dim in others)):
                index = tuple(place[others.index(dim)] if dim in others else slice(None) for dim in range(root.ndim))
                ranks = [int(each) for each in whole[index].reshape(-1)]
                made = new_group(ranks, sort_ranks=False)
                if get_rank() in ranks:
                    own = made
            root._parts[(name,)] = DeviceMesh(
                self.device_type, self._ranks.reshape(-1), mesh_dim_names=(name,), _groups=[own], _root_mesh=root
            )
        return root._parts[(name,)]

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:
        """A mesh of the processes of a group, or of several groups along the dimensions of `mesh`."""
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        ranks = get_process_group_ranks(groups[0]) if mesh is None else mesh
        return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __enter__(self) -> DeviceMesh:
        """Be the mesh of functions that are given none."""
        _ENTERED.meshes.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _ENTERED.meshes.pop()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and self.mesh_dim_names == other.mesh_dim_names
            and np.array_equal(self._ranks, other._ranks)
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self._ranks.tobytes(), self._ranks.shape))

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        if names is None:
            sizes = str(self.shape)
        else:
            sizes = f"({', '.join(f'{name}={size}' for name, size in zip(names, self.shape, strict=True))})"
        steps = tuple([math.prod(self.shape[dim + 1 :]) for dim in range(self.ndim)])
        return f"DeviceMesh({sizes}, '{self.device_type}', stride={steps})"


class _Entered(threading.local):
    def __init__(self) -> None:
        self.meshes: list[DeviceMesh] = []


_ENTERED = _Entered()


def current_mesh() -> DeviceMesh:
    """The mesh whose `with` block this is."""
    if not _ENTERED.meshes:
        raise RuntimeError("No device mesh is currently active!")
    return _ENTERED.meshes[-1]


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """All processes, in the order of their ranks, in a mesh of a shape.

    Args:
        device_type (str): "cpu" or "cuda".
        mesh_shape (tuple of ints): the size of each dimension.
        mesh_dim_names (tuple of strs, optional): the names of the dimensions.
        backend_override: the backend of dimensions by name or number.

    Returns:
        DeviceMesh: the mesh.

    Example:
        >>> dist.init_device_mesh("cpu", (2,), mesh_dim_names=("data",)).size()
        2
    """
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(f"Each mesh_dim_name must be unique, and they are {mesh_dim_names}")
    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}.")
    ranks = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
