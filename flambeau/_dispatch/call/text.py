"""What the source of every short call has in common: how a result becomes a tensor, and when a call is recorded.

The short ways are text because a function call costs more than all that one of them does: what would be a helper is
written out wherever it is needed, from here.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from typing import Any

from ..._core.modes import THREAD, UNCAST
from ..._core.process.caller import GENERATED
from ..._core.tensor import DEFAULT, INFERENCE, NO_GRAD, PLAIN_TYPES, Tensor, View, new

NAMES: Mapping[str, Any] = {
    "DEFAULT": DEFAULT,
    "INFERENCE": INFERENCE,
    "NO_GRAD": NO_GRAD,
    "PLAIN_TYPES": PLAIN_TYPES,
    "THREAD": THREAD,
    "Tensor": Tensor,
    "UNCAST": UNCAST,
    "View": View,
    "new": new,
}
"""What the text below refers to."""

OUTSIDE_THE_GRAPH = ("output._requires_grad = False", "output._grad_fn = None")
"""What a tensor has that no node made."""

_ALWAYS = ("output._output_nr = 0", "output._grad = output._extra = None")


def new_tensor(array: str, of_type: str = "Tensor", place: Sequence[str] = OUTSIDE_THE_GRAPH) -> list[str]:
    """Makes `output`: a tensor of `kind` over an array in memory of its own.

    `place` puts it outside the graph; a call that decides later where it belongs leaves that out.
    """
    return [
        *_over(array, of_type),
        "output._counter = None if modes.inference else [0, None]",
        "output._view = None",
        *place,
        *_ALWAYS,
    ]


def new_view(array: str, source: str, place: Sequence[str] = OUTSIDE_THE_GRAPH) -> list[str]:
    """Makes `output`: a tensor of `kind` over a window on the memory of `source`. See `remember_base`.

    For `place` see `new_tensor`.
    """
    return [
        *_over(array),
        f"counter = output._counter = {source}._counter",
        "output._view = None",
        "if counter is not None:",
        f"    view = {source}._view",
        "    origin = output._view = new(View)",
        f"    origin.base = {source} if view is None else view.base",
        "    origin.version = counter[0]",
        "    if modes.inference:",
        "        origin.creation = INFERENCE",
        "    elif modes.grad:",
        "        origin.creation = DEFAULT if view is None else view.creation",
        "    else:",
        "        origin.creation = NO_GRAD",
        *place,
        *_ALWAYS,
    ]


def new_window(array: str) -> list[str]:
    """Makes `output`: one of several windows of `kind` on a memory, whose `counter`, `base`, `version` and `creation`
    are known.
    """
    return [
        *_over(array, "kind.tensor_type"),
        "output._counter = counter",
        "view = output._view = new(View)",
        "view.base = base",
        "view.version = version",
        "view.creation = creation",
        *OUTSIDE_THE_GRAPH,
        *_ALWAYS,
    ]


def _over(array: str, of_type: str = "Tensor") -> list[str]:
    return [f"output = new({of_type})", f"output._array = {array}", "output._kind = kind"]


def needs_gradient(tensor: str) -> str:
    """The test whether a tensor is part of a graph."""
    return f"{tensor}._requires_grad or ({tensor}._view is not None and {tensor}.requires_grad)"


def is_recorded(needs: str) -> str:
    """The test whether a call is recorded, of whose arguments some need gradients."""
    return f"modes.grad and ({needs}) and not modes.inference"


def indented(lines: Sequence[str], by: int) -> str:
    """Lines as they stand in a block."""
    return "\n".join(f"{' ' * by}{line}" for line in lines)


def kept(title: str, source: str) -> str:
    """The name of a file that is said to hold a source: debuggers and tracebacks find the lines there."""
    file = f"{GENERATED}{title}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return file
