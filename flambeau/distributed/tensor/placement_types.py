"""How a tensor lies along one dimension of a mesh: cut in parts, the same everywhere, or still to be added up."""

from __future__ import annotations

from dataclasses import dataclass

from ..._core.names.absent import Table

__all__ = ["Partial", "Placement", "Replicate", "Shard"]

__getattr__, __dir__ = (
    Table(__name__).absent("a dimension is cut along one mesh dimension only", classes="_StridedShard").parts()
)


class Placement:
    """What the processes along one dimension of a mesh have of a tensor.

    Example:
        >>> dist.tensor.Shard(0).is_shard(), dist.tensor.Replicate().is_replicate()
        (True, True)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, cut along `dim` if that is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether every process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is the sum, or another combination, of what the processes have."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part, cut along a dimension as `chunk` cuts: the last ones may be shorter, or empty.

    Args:
        dim (int): the dimension that is cut.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.distribute_tensor(torch.arange(3), mesh, [dist.tensor.Shard(0)]).to_local()
        tensor([0, 1])
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long the part of a process is, and where it begins."""
        step = -(-curr_local_size // num_chunks)
        start = min(rank * step, curr_local_size)
        return min(step, curr_local_size - start), start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, init=False, repr=False)
class _StridedShard(Shard):
    """A part of what later dimensions of the mesh have cut: here the last dimension of the mesh cuts first.

    `fully_shard` makes it of parameters that `parallelize_module` has cut along the same dimension before, into
    `split_factor` parts.
    """

    split_factor: int

    def __init__(self, dim: int, *, split_factor: int = 1, sf: int | None = None) -> None:
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor if sf is None else sf)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Every process has the whole tensor.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> dist.tensor.distribute_tensor(torch.arange(2), mesh, [dist.tensor.Replicate()]).to_local()
        tensor([0, 1])
    """

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the combination of what all processes have: their sum, mean ("avg"), "max" or "min".

    Args:
        reduce_op (str): how they are combined: "sum", "avg", "max" or "min". Default: `"sum"`.

    Example:
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> x = dist.tensor.DTensor.from_local(torch.ones(2), mesh, [dist.tensor.Partial()])
        >>> x.full_tensor()
        tensor([2., 2.])
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def chunk_sizes(size: int, count: int) -> list[int]:
    """How long the parts of a dimension are."""
    return [Shard.local_shard_size_and_offset(size, count, rank)[0] for rank in range(count)]
