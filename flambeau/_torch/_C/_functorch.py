"""Questions about transforms of functions under their compiled module's name: being built."""

from __future__ import annotations

from typing import Any

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .returning(
        lambda: False,
        functions="is_legacy_batchedtensor is_batchedtensor is_functorch_wrapped_tensor is_gradtrackingtensor",
    )
    .absent(
        "transforms of functions are being built",
        functions="_add_batch_dim _remove_batch_dim _vmap_increment_nesting _vmap_decrement_nesting get_unwrapped",
    )
    .parts()
)


def maybe_get_level(tensor: Any) -> int:
    """The level of the transform that a tensor belongs to: none."""
    return -1
