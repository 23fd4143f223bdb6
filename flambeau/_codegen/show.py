"""Looking at generated code: which kernels a call runs, and what they consist of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .kernel import KERNELS, Kernel


def kernels_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Kernel, tuple[Any, ...]]]:
    """Run `function`; the generated kernels that it called, each with its parameters, in the order of first use."""
    called: dict[int, Any] = {}  # with the functions themselves, so that no other takes the place of one in memory

    def notice(frame: Any, event: str, what: Any) -> None:
        if event == "c_call":
            called[id(what)] = what

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(before)
    made = {
        id(compiled): (kernel, parameters) for kernel in KERNELS.values() for parameters, compiled in kernel.compiled()
    }
    return [made[key] for key in called if key in made]
