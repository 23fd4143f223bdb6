"""The settings of a thread and of the process that decide what ops do: a program is for those of its recorded call."""

from __future__ import annotations

from typing import Any

from ..._backends.tiers import wanted
from ..._core.dtype import DEFAULTS
from ..._core.modes import THREAD, Modes
from ..._core.process import defaults
from ..._core.process.determinism import DETERMINISM
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.process.threads import num_threads
from ..._dispatch.arguments.autocast import autocast_key
from ..._ops.nn import attention

NAMES = (
    "grad mode",
    "inference mode",
    "autocast",
    "the default dtype",
    "the default device",
    "deterministic algorithms",
    "filling of new memory",
    "warnings of nondeterminism",
    "the number of threads",
    "generated kernels",
    "the level of reproducibility",
    "the kernels of attention",
)
"""What the settings are, in words for the user."""


def settings() -> tuple[Any, ...]:
    """The settings, as something that can be compared."""
    modes = THREAD.modes
    return (
        modes.grad,
        modes.inference,
        autocast_key(),
        DEFAULTS.float,
        defaults._ever_chosen and defaults.default_device(),
        DETERMINISM.asked,
        DETERMINISM.fills,
        DETERMINISM.warn_only,
        num_threads(),
        wanted(),
        REPRODUCIBILITY.level,
        frozenset(attention.ENABLED),
    )


def what_forbids(modes: Modes) -> str | None:
    """Why calls are not compiled in such modes, in words for the user; "": they are part of one that is recorded."""
    if modes.interpreters:
        inside = modes.interpreters[-1]
        return "" if inside.repeats else f"it is called while {_told(inside)} runs the ops"
    if modes.functions:
        return f"it is called inside {_told(modes.functions[-1])}, which sees every function"
    if modes.anomaly:
        return "it is called while anomaly detection is on"
    if modes.saved_hooks:
        return "it is called inside saved_tensors_hooks"
    if modes.forward_level >= 0:
        return "it is called inside forward-mode differentiation (dual_level)"
    return None


def _told(mode: Any) -> str:
    return f"{type(mode).__module__}.{type(mode).__qualname__}"
