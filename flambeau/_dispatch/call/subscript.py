"""`x[index]` as a method: the short way to a window, written with the text of the other short calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.tensor import DIRECT_TYPES, Tensor
from ..gradients.recorder import written
from .text import NAMES, needs_gradient, new_view


def short_getitem(
    basic_index: Callable[[Any, int], Any], plan_index: Callable[..., Any], slow: Callable[[Tensor, Any], Tensor]
) -> Callable[[Tensor, Any], Tensor]:
    """`__getitem__`: windows that nothing records are made at once, and `slow` does the rest.

    `basic_index` gives NumPy's index for a window, `plan_index` raises what is wrong with one that NumPy refuses.
    """
    lines = [
        "modes = THREAD.modes",
        f"if modes.plain and type(self) in DIRECT_TYPES and not (modes.grad and ({needs_gradient('self')})):",
        "    array = self._array",
        "    key = basic_index(index, array.ndim) if type(index) is not int or array.ndim < 2 else index",
        "    if key is not None and (type(key) is not tuple or None not in key):",
        "        kind = self._kind",
        "        try:",
        "            array = array[key]",
        "        except IndexError:",
        "            plan_index(index, array.shape)",
        "            raise",
        *[f"        {line}" for line in new_view("array", "self")],
        "        return output",
        "return slow(self, index)",
    ]
    names = {**NAMES, "DIRECT_TYPES": DIRECT_TYPES, "basic_index": basic_index, "plan_index": plan_index, "slow": slow}
    return written("__getitem__", "self, index", lines, "x[index]", names)
