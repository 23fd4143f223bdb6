"""Ops that a device has no kernel for: they run on the host, and say so once each."""

from __future__ import annotations

import sys
from collections import Counter
from inspect import getattr_static
from time import perf_counter

from .caller import PACKAGE, warn_user

HOST_OPS: Counter[str] = Counter()
"""How often an op of a device's tensors ran on the host, by its name: each is a wait for the device and two copies."""

_FUNCTIONS = f"{PACKAGE}_ops"
"""Where the functions are that users call."""


class on_the_host:
    """A context around what the host computes in place of a device; `function` names it where no op is being run."""

    __slots__ = ("_begin", "_device_type", "_name")

    def __init__(self, function: str, device_type: str) -> None:
        self._name = _op_being_run() or function
        self._device_type = device_type

    def __enter__(self) -> None:
        self._begin = perf_counter()

    def __exit__(self, kind: object, *exception: object) -> None:
        if kind is not None:
            return
        HOST_OPS[self._name] += 1
        if HOST_OPS[self._name] == 1:
            warn_user(
                f"{self._name} ran on the host: it has no kernel for {self._device_type}. Its tensors were copied to "
                f"the host and its result back, which took {(perf_counter() - self._begin) * 1e3:.1f} ms this time. "
                "This is said once for each op. If it matters, move the tensors to the CPU once for all such ops."
            )


def _op_being_run() -> str | None:
    """The name of the innermost op whose call is under way, as the function that the user called has it if it does."""
    frame, name = sys._getframe(1), None
    while frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
        if name is None and code.co_varnames[:1] == ("self",):
            own = frame.f_locals.get("self")
            if getattr_static(own, "kernel", None) is not None:  # a look that runs no code of `own`, which may refuse
                found = getattr(own, "name", None)
                name = found if isinstance(found, str) else None
        elif name is not None and code.co_filename.startswith(_FUNCTIONS) and not code.co_name.startswith(("_", "<")):
            return code.co_name
        elif name is not None and not code.co_filename.startswith(PACKAGE):
            break
    return name
