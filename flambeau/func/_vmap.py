"""`vmap`: a function of one example becomes a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .._core.tensor import Tensor
from .._ops.shape.join import cat
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batching.interpreter import Interpreter

__all__ = ["vmap"]

Dims = Any
"""An int, None, or a nest of those."""


def vmap(
    func: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func`, written for one example, as a function of many at once.

    Every tensor among the arguments is mapped over the dimension that `in_dims` gives, an int for all of them or a nest
    of ints and None (not mapped) in the structure of the arguments; results have the examples along `out_dims`. Nothing
    is repeated: each op runs once, on all examples. `randomness` says whether random numbers inside are "different" for
    each example, the "same", or an "error"; with `chunk_size` at most so many examples run at once.

    >>> flambeau.vmap(flambeau.dot)(flambeau.ones(2, 3), flambeau.ones(2, 3))
    tensor([3., 3.])

    Args:
        func (Callable): the function of one example.
        in_dims (Dims): which dimension of each argument counts the examples; None gives an argument to all of them.
            Default: `0`.
        out_dims (Dims): where that dimension stands in the results. Default: `0`.
        randomness (str): what random functions do: "error", "same" or "different" numbers for each example. Default:
            `"error"`.
        chunk_size (int, optional): how many examples to compute at once; None computes all together.

    Returns:
        a function of whole batches.
    """
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = _prepared(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, dims, leaves, structure, out_dims, randomness, kwargs)
        parts = [
            _run(func, count, dims, part, structure, out_dims, randomness, kwargs)
            for count, part in _chunks(leaves, dims, size, chunk_size)
        ]
        return _joined(parts, out_dims, func)

    return wrapped


def check_randomness(randomness: str) -> None:
    """Refuse words that say nothing about random numbers."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _prepared(in_dims: Dims, args: tuple[Any, ...], func: Any) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """The number of examples, and for each leaf of the arguments the dimension along which they lie."""
    called = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{called}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    leaves, structure = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, structure)
    if dims is None:
        raise ValueError(
            f"{called}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {structure}."
        )
    for number, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{called}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{called}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{called}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} "
                f"so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        dims[number] = dim % leaf.dim()
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over: every in_dim is None")
    if any(each != sizes[0] for each in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, structure


def _run(
    func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], structure: TreeSpec, out_dims: Dims,
    randomness: str, kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    level = Interpreter(size, randomness)
    try:
        args = tree_unflatten(
            [
                leaf if dim is None else level.wrapped(leaf.movedim(dim, 0))
                for leaf, dim in zip(leaves, dims, strict=True)
            ],
            structure,
        )
        with level:
            results = func(*args, **kwargs)
        return _unwrapped(level, results, out_dims, func)
    finally:
        level.running = False


def _flat_out_dims(structure: TreeSpec, out_dims: Dims, func: Any) -> list[Any]:
    if structure.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    called = f"vmap({_name(func)}, ..., out_dims={out_dims})"
    dims = _broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise ValueError(
            f"{called}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {structure}."
        )
    for each in dims:
        if not (each is None or isinstance(each, int)):
            raise ValueError(
                f"{called}: `out_dims` must be an int, None or a python collection of ints representing where in the "
                "outputs the vmapped dimension should appear."
            )
    return dims


def _unwrapped(level: Interpreter, results: Any, out_dims: Dims, func: Any) -> Any:
    flat, structure = tree_flatten(results)
    dims = _flat_out_dims(structure, out_dims, func)
    unwrapped = []
    for result, dim in zip(flat, dims, strict=True):
        if dim is None:
            if level.has(result):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
                )
            unwrapped.append(result)
            continue
        if not isinstance(result, Tensor):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(result)}. Did you "
                "mean to set out_dims= to None for output?"
            )
        unwrapped.append(level.front(result).movedim(0, dim))
    return tree_unflatten(unwrapped, structure)


def _chunks(leaves: list[Any], dims: list[Any], size: int, count: int) -> Iterator[tuple[int, list[Any]]]:
    for start in range(0, size, count):
        length = min(count, size - start)
        yield (
            length,
            [leaf if dim is None else leaf.narrow(dim, start, length) for leaf, dim in zip(leaves, dims, strict=True)],
        )


def _joined(parts: list[Any], out_dims: Dims, func: Any) -> Any:
    flat = [tree_flatten(each)[0] for each in parts]
    structure = tree_flatten(parts[0])[1]
    dims = _flat_out_dims(structure, out_dims, func)
    joined = [
        column[0] if dim is None else cat(list(column), dim)
        for column, dim in zip(zip(*flat, strict=True), dims, strict=True)
    ]
    return tree_unflatten(joined, structure)
