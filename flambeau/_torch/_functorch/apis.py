"""`torch._functorch.apis`: the transforms of `torch.func` that users call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.func import grad, grad_and_value, vmap
from flambeau.utils._pytree import tree_leaves

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` in so many parts, one after the other: less memory at a time."""

    def run(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        sizes = [tree_leaves(each)[0].shape[dim] for each, dim in zip(args, dims, strict=True) if type(dim) is int]
        size = -(-sizes[0] // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return run
