"""Which kernels NumPy can run with the bits of generated code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_MODULES = {
    "channels": "batch_norm_planes batch_norm_lines batch_norm_planes_backward batch_norm_lines_backward",
    "elements": "pointwise_flat pointwise_strided update_list square_sums",
    "images": "planar_copy channels_innermost_copy",
    "layers": "attention_forward attention_backward lstm_step lstm_step_backward gru_step gru_step_backward",
    "products": "fixed_order_product few_rows_of_turned tree_product",
    "rows": "rows_one_by_one rows_in_tiles sums_in_order group_norm_rows group_norm_rows_backward",
}
PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}
"""For a kernel the module of this folder that runs it."""


def found(name: str, parameters: tuple[Any, ...]) -> Callable[..., Any]:
    """What runs a kernel; a RuntimeError if NumPy has no way that gives the same bits."""
    module = PLACES.get(name)
    if module is None:
        raise RuntimeError(
            f"the kernel {name} needs generated code, which is missing or switched off here: `flambeau info` says what "
            "to install"
        )
    made: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)(*parameters)
    return made
