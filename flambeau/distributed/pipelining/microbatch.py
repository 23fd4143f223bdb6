"""Batches cut into small ones, and results put together again."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._ops.shape.join import cat
from ...utils._pytree import tree_flatten, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Along which dimension a tensor is cut."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """One for each argument.

        >>> from flambeau.distributed.pipelining.microbatch import TensorChunkSpec
        >>> TensorChunkSpec.from_tuple((0, 1))
        (TensorChunkSpec(0), TensorChunkSpec(1))
        """
        return tuple(map(TensorChunkSpec, chunk_dims))

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each argument that is given by name."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[Any, ...] | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Arguments for each small batch: tensors are cut along their first dimension, unless a spec says another."""
    options = kwargs or {}
    positional = [
        _cut(each, args_chunk_spec[number] if args_chunk_spec else None, chunks) for number, each in enumerate(args)
    ]
    named = {name: _cut(each, (kwargs_chunk_spec or {}).get(name), chunks) for name, each in options.items()}
    return (
        [tuple(each[number] for each in positional) for number in range(chunks)],
        [{name: each[number] for name, each in named.items()} for number in range(chunks)],
    )


def _cut(value: Any, spec: Any, chunks: int) -> list[Any]:
    leaves, form = tree_flatten(value)
    dim = spec.split_dim if isinstance(spec, TensorChunkSpec) else 0
    cut = []
    for leaf in leaves:
        if isinstance(leaf, Tensor) and leaf.ndim:
            if leaf.shape[dim] < chunks:
                raise RuntimeError(f"a batch of {leaf.shape[dim]} cannot be cut into {chunks} small batches")
            cut.append(list(leaf.tensor_split(chunks, dim)))
        else:
            cut.append([leaf] * chunks)
    return [tree_unflatten([each[number] for each in cut], form) for number in range(chunks)]


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """Results of small batches as one: tensors one behind the other, of other values the first."""
    flat = [tree_flatten(each) for each in chunks]
    dim = chunk_spec.split_dim if isinstance(chunk_spec, TensorChunkSpec) else 0
    merged: list[Any] = []
    for leaves in zip(*[each[0] for each in flat], strict=True):
        joined = isinstance(leaves[0], Tensor) and leaves[0].ndim
        merged.append(cat(list(leaves), dim) if joined else leaves[0])
    return tree_unflatten(merged, flat[0][1])
