"""`x[index]` as a method: the short way to a window, written with the text of the other short calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.tensor import DIRECT_TYPES, Tensor
from ..gradients.recorder import written
from .text import NAMES, needs_gradient, new_view


def short_getitem(
    basic_index: Callable[[Any, int], Any],
    grown: Callable[[Any, Any], Any],
    window: Callable[[Tensor, Any], Tensor],
    pick: Callable[[Tensor, Any], Tensor | None],
    slow: Callable[[Tensor, Any], Tensor],
) -> Callable[[Tensor, Any], Tensor]:
    """`__getitem__`: windows that nothing records are made at once, and `slow` does the rest.

    `basic_index` gives NumPy's index for a window; `grown` is the window where None stands in that index, `window` is
    one that is recorded. `pick` gathers what tensors of positions, or a mask, stand for; it returns None for other
    indices. `slow` also says what is wrong with an index that NumPy refuses.
    """
    lines = [
        "modes = THREAD.modes",
        "if modes.plain and type(self) in DIRECT_TYPES:",
        "    array = self._array",
        "    if type(index) is int and array.ndim > 1:",
        "        key = index",
        "    elif index is None:",
        "        key = (None,)",
        "    else:",
        "        key = None if type(index) in PLAIN_TYPES else basic_index(index, array.ndim)",
        f"    if modes.grad and ({needs_gradient('self')}):",
        "        if key is not None and type(index) is not int:",
        "            try:",
        "                return window(self, index)",
        "            except Exception:",
        "                pass",  # the slow way says what is wrong, with no error before its own
        "    elif key is None:",
        "        try:",
        "            output = pick(self, index)",
        "        except Exception:",
        "            output = None",  # the slow way says what is wrong, with no error before its own
        "        if output is not None:",
        "            return output",
        "    else:",
        "        kind = self._kind",
        "        try:",
        "            array = array[key] if type(key) is not tuple or None not in key else grown(array, key)",
        "        except IndexError:",
        "            pass",
        "        else:",
        *[f"            {line}" for line in new_view("array", "self")],
        "            return output",
        "return slow(self, index)",
    ]
    names = {
        "DIRECT_TYPES": DIRECT_TYPES,
        "basic_index": basic_index,
        "grown": grown,
        "window": window,
        "pick": pick,
        "slow": slow,
    }
    return written("__getitem__", "self, index", lines, "x[index]", {**NAMES, **names})
