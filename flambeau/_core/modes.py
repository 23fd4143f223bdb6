"""The modes of the running thread: is the graph recorded, is this inference, who runs the ops?

Every op reads `THREAD.modes` once: a thread-local look-up is the dearest thing on the short path, so the rest are plain
slots of one object.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .process.interrupts import uninterrupted


class Ruled:
    """A function for which autocast has a rule: `own` computes, and what is called for it depends on the thread.

    `rules` has the rule of each type of device.
    """

    __slots__ = ("own", "rules")

    def __init__(self, rules: Mapping[str, Any], own: Callable[..., Any]) -> None:
        self.rules, self.own = rules, own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What autocast makes of a call in this thread. (A function that is called often does the look-up itself.)"""
        return THREAD.modes.autocast[self](*args, **kwargs)


class Casts(dict[Ruled, Callable[..., Any]]):
    """What runs in place of functions that autocast has a rule for: here, where it is off, they themselves."""

    elementwise = False
    """Whether some elementwise ops are among the functions whose arguments are cast."""

    def __missing__(self, ruled: Ruled) -> Callable[..., Any]:
        own = self[ruled] = ruled.own
        return own


UNCAST = Casts()
"""The table of a thread in which autocast is off, and inside functions whose arguments were cast."""


DIRECT: set[Any] = set()
"""The kinds of dense tensors with data; `kind_of` adds each that it makes. See `Modes.direct`."""

NONE_DIRECT: frozenset[Any] = frozenset()
"""The table of a thread in which something else looks on, or works, besides the ops themselves."""


class Modes:
    """What ops of one thread have to heed.

    `plain` is True while only the grad and inference modes and autocast matter: no interpreter, no mode that sees
    functions, no forward-mode level, no anomaly detection, no saved-tensor hooks. The short paths test it and leave
    everything else to the long one. `direct` is the table in which functions look up whether they may compute on the
    arrays of a kind themselves, beside the ops: every kind of dense tensors with data in plain modes, none otherwise.
    `watcher` is the interpreter that looks on, where nothing but it keeps the modes
    from being plain: `is_ordinary` says that calls run the kernels of plain modes, watched or not. `autocast` is the
    table in which functions that autocast has a rule for look up what runs in their place.
    """

    __slots__ = (
        "__weakref__",
        "anomaly",
        "anomaly_check_nan",
        "autocast",
        "backward_pass",
        "direct",
        "forward_level",
        "functions",
        "grad",
        "grad_layout",
        "inference",
        "interpreters",
        "is_ordinary",
        "overrides_disabled",
        "plain",
        "saved_hooks",
        "saved_hooks_disabled",
        "watcher",
    )

    def __init__(self) -> None:
        self.grad = True
        self.grad_layout = True  # whether gradients of leaves get the strides of the leaves
        self.inference = False
        self.interpreters: tuple[Any, ...] = tuple(BASE)  # those in charge, the innermost last
        self.anomaly, self.anomaly_check_nan = ANOMALY
        self.forward_level = -1
        self.functions: tuple[Any, ...] = ()  # the modes that see every function, the innermost last
        self.overrides_disabled = False
        self.backward_pass: Any = None  # the innermost running one
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.saved_hooks_disabled: str | None = None
        self.autocast: Casts = UNCAST
        self.refresh()

    @uninterrupted
    def refresh(self) -> None:
        """Derive `plain`, `direct` and `watcher`; call it after changing any of the modes that they stand for.

        It calls nothing, so that no interrupt stops it half-way.
        """
        stack = self.interpreters
        others = self.functions or self.anomaly or self.saved_hooks or self.forward_level >= 0
        self.plain = not (stack or others)
        self.direct = DIRECT if self.plain else NONE_DIRECT
        is_one = stack and not stack[1:]
        self.watcher: Any = stack[0] if is_one and stack[0].only_watches and not others else None
        self.is_ordinary = self.plain or self.watcher is not None

    def run_as_plain(self) -> bool:
        """Whether ops run as in plain modes, with somebody who looks on, or who writes them down to run them again."""
        if self.is_ordinary:
            return True
        stack = self.interpreters
        others = self.functions or self.anomaly or self.saved_hooks or self.forward_level >= 0
        return len(stack) == 1 and stack[0].repeats and not others


ANOMALY = [False, True]
"""Anomaly detection is the one mode that holds for all threads: whether it is on, whether it looks for NaN."""

BASE: list[Any] = []
"""The interpreter below all others, in every thread, if there is one."""

_all_modes: weakref.WeakSet[Modes] = weakref.WeakSet()


def set_anomaly(enabled: bool, check_nan: bool) -> None:
    """Switch anomaly detection in every thread, those to come included."""
    ANOMALY[:] = enabled, check_nan
    for modes in list(_all_modes):
        modes.anomaly, modes.anomaly_check_nan = enabled, check_nan
        modes.refresh()


def set_base_interpreter(interpreter: Any) -> None:
    """Put an interpreter below all others in every thread, those to come included; None takes it away."""
    before = list(BASE)
    BASE[:] = [] if interpreter is None else [interpreter]
    if before == BASE:
        return
    for modes in list(_all_modes):
        modes.interpreters = (*BASE, *[each for each in modes.interpreters if each not in before])
        modes.refresh()


_thread_setups: list[Callable[[], object]] = []


class _Thread(threading.local):
    def __init__(self) -> None:
        self.modes = Modes()
        _all_modes.add(self.modes)
        # Tensors follow PyTorch: 1 / 0 is inf, without a word. NumPy's own setting is per thread, like these modes.
        np.seterr(all="ignore")
        for setup in _thread_setups:
            setup()


THREAD = _Thread()


def in_every_thread(setup: Callable[[], object]) -> None:
    """Call `setup` in this thread, and before the first op of every thread that has run none yet."""
    _thread_setups.append(setup)
    setup()


def beside_the_ops(what: str = "the elements of a tensor are looked at") -> None:
    """Say that something happens beside the ops: what an interpreter in charge sees is not all."""
    stack = THREAD.modes.interpreters
    if stack:
        stack[-1].misses(f"{what} beside the ops")


class recording:
    """A context in which operations are recorded or not: `enable_grad` and `no_grad` for the package's own code."""

    __slots__ = ("_before", "_enabled")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before, modes.grad = modes.grad, self._enabled

    @uninterrupted
    def __exit__(self, *error: object) -> None:
        THREAD.modes.grad = self._before
