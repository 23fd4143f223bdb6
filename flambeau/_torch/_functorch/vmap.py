"""`torch._functorch.vmap`: the parts of `vmap` that libraries with batches of their own import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.names.absent import Table
from flambeau._core.tensor import Tensor
from flambeau.func._vmap import vmap
from flambeau.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten

__all__ = ["Tensor", "_broadcast_to_and_flatten", "tree_flatten", "tree_map_", "tree_unflatten", "vmap_impl"]

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "vmap has no levels that are entered by hand: call torch.vmap",
        functions="_add_batch_dim _remove_batch_dim _create_batched_inputs _process_batched_inputs _unwrap_batched "
        "_maybe_remove_batch_dim _validate_and_get_batch_size _flat_vmap _chunked_vmap get_chunk_sizes",
    )
    .returning(lambda: False, functions="is_batchedtensor")
    .parts()
)


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A call of `vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)`."""
    return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)


def _get_name(func: Any) -> str:
    """How errors call a function."""
    return getattr(func, "__name__", None) or repr(func)
