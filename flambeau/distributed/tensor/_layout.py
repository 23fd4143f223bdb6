"""`Layout`: a shape, a mesh, and how the tensor of that shape is sharded over it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard, chunk_sizes


@dataclass(frozen=True)
class Layout:
    """How a tensor is sharded. A dimension that several dimensions of the mesh cut is cut by the first of them first,
    and by those that stride last.
    """

    shape: tuple[int, ...]
    mesh: DeviceMesh
    placements: tuple[Placement, ...]

    def order(self) -> list[int]:
        """The dimensions of the mesh in the order in which they cut."""
        return sorted(range(self.mesh.ndim), key=lambda number: isinstance(self.placements[number], _StridedShard))

    def extents(self, dim: int, before: int | None = None) -> tuple[int, int]:
        """How long this process's part is along `dim`, and where it begins, cut by those dimensions of the mesh that
        cut before the dimension `before`.
        """
        size, start = self.shape[dim], 0
        place = self.mesh.get_coordinate() or [0] * self.mesh.ndim
        for number in itertools.takewhile(lambda each: each != before, self.order()):
            if self.placements[number].is_shard(dim):
                size, offset = Shard.local_shard_size_and_offset(size, self.mesh.size(number), place[number])
                start += offset
        return size, start

    def local_shape(self) -> tuple[int, ...]:
        """The shape of this process's part."""
        return tuple([self.extents(dim)[0] for dim in range(len(self.shape))])

    def offsets(self) -> tuple[int, ...]:
        """Where this process's part begins."""
        return tuple([self.extents(dim)[1] for dim in range(len(self.shape))])

    def parts_along(self, number: int) -> list[int]:
        """How long the parts are that one dimension of the mesh cuts."""
        placement = self.placements[number]
        assert isinstance(placement, Shard)
        return chunk_sizes(self.extents(placement.dim, number)[0], self.mesh.size(number))

    def with_placement(self, number: int, placement: Placement) -> Layout:
        """The layout with another placement along one dimension of the mesh."""
        changed = list(self.placements)
        changed[number] = placement
        return Layout(self.shape, self.mesh, tuple(changed))

    def cuts_twice(self) -> bool:
        """Whether several dimensions of the mesh cut the same dimension of the tensor."""
        dims = [each.dim for each in self.placements if isinstance(each, Shard)]
        return len(set(dims)) < len(dims)

    def of_gradient(self) -> Layout:
        """How the gradient of such a tensor is sharded: where the tensor is still to be added up, all have it."""
        kept = [Replicate() if isinstance(each, Partial) else each for each in self.placements]
        return Layout(self.shape, self.mesh, tuple(kept))

    def __str__(self) -> str:
        return f"{list(self.shape)}({', '.join(map(str, self.placements))})"


def normalised(placements: Sequence[Placement] | None, ndim: int, mesh: DeviceMesh, default: Placement) -> tuple[
    Placement, ...
]:  # fmt: skip
    """Placements for a tensor of so many dimensions, those counted from the end included."""
    given = [default] * mesh.ndim if placements is None else list(placements)
    if len(given) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! "
            f"Found placements length: {len(given)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found: list[Placement] = []
    for each in given:
        if not isinstance(each, Placement):
            raise TypeError(f"a placement is a Shard, Replicate or Partial, and {each!r} is none")
        if isinstance(each, Shard):
            if not -max(ndim, 1) <= each.dim < max(ndim, 1):
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {each.dim})"
                )
            if not ndim:
                raise AssertionError("Expected tensor.dim() > 0, got 0: a number cannot be cut")
            each = dataclasses.replace(each, dim=each.dim % ndim) if each.dim < 0 else each
        found.append(each)
    return tuple(found)
