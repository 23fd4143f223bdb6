"""Autocast: ops that first bring their inputs to the precision that suits them.

A public function that has a rule looks at one table, `CASTING`, which is empty while no thread has autocast on: that is
all it costs then. Otherwise it looks up in the table of its thread, `modes.autocast`, what runs in its place: a
function that casts the arguments and calls it, made at the first look-up (`casting_calls.py`), or, where nothing is to
be cast, the function itself. A family that calls what computes, and not the public function, declares it as `Ruled`.
Elementwise functions with a rule have their operands cast by the same table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..._core.device import device
from ..._core.dtype import dtype
from ..._core.modes import THREAD, UNCAST, Casts
from ..._core.process.interrupts import Restoring, uninterrupted
from ..public.protocol import CASTING
from .casting_calls import CastingCalls, Settings

Function = Callable[..., Any]


class _Thread(threading.local):
    """Autocast as each thread has it."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.tables: dict[tuple[tuple[str, dtype], ...], Casts] = {}


_THREAD = _Thread()


# ----- what is asked and set ----------------------------------------------------------------------------------------


def _device_type(name: Any, function: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(name).__name__}")
    kind: str = device(name).type
    if kind not in _THREAD.settings.dtypes:
        raise RuntimeError(f"unknown device type for autocast in {function}: {kind!r}")
    return kind


def is_available(device_type: str) -> bool:
    """Whether autocast knows a type of device."""
    return device(device_type).type in _THREAD.settings.dtypes


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a type of device in this thread.

    Args:
        device_type (str): the type of device, such as "cpu" or "cuda". Default: `"cuda"`.

    Returns:
        bool: whether it is on.

    Example:
        >>> with torch.autocast("cpu"):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    return _device_type(device_type, "is_autocast_enabled") in _THREAD.settings.enabled


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for some type of device in this thread."""
    return bool(_THREAD.settings.enabled)


def set_autocast_enabled(device_type: Any, enabled: Any = None) -> None:
    """Switch autocast for a type of device in this thread. With one argument, a bool, it is about CUDA.

    Args:
        device_type: the type of device, such as "cpu" or "cuda".
        enabled: whether it is on.

    Example:
        >>> torch.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' must be bool, not {type(enabled).__name__}")
    kind = _device_type(device_type, "set_autocast_enabled")
    now = {name: value for name, value in _THREAD.settings.enabled.items() if name != kind}
    if enabled:
        now[kind] = _THREAD.settings.dtypes[kind]
    _enable(now)


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that autocast uses on a type of device in this thread.

    Args:
        device_type (str): the type of device, such as "cpu" or "cuda".

    Returns:
        dtype: the dtype.

    Example:
        >>> torch.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    kind = device(device_type).type
    if kind not in _THREAD.settings.dtypes:
        raise RuntimeError(f"unsupported scalarType: autocast has no dtype for {kind!r}")
    return _THREAD.settings.dtypes[kind]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Choose the dtype that autocast uses on a type of device in this thread.

    Args:
        device_type (str): the type of device, such as "cpu" or "cuda".
        dtype (dtype): the dtype; None keeps that of the parts.

    Example:
        >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    kind = _device_type(device_type, "set_autocast_dtype")
    _THREAD.settings.dtypes[kind] = dtype
    if kind in _THREAD.settings.enabled:
        _enable(_THREAD.settings.enabled | {kind: dtype})


def is_autocast_cache_enabled() -> bool:
    """Whether the casts of weights are kept until the outermost region ends.

    Returns:
        bool: whether they are.

    Example:
        >>> torch.is_autocast_cache_enabled()
        True
    """
    return _THREAD.settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Choose whether the casts of weights are kept until the outermost region ends.

    Args:
        enabled (bool): whether it is on.

    Example:
        >>> torch.set_autocast_cache_enabled(True)
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _THREAD.settings.cache_enabled = enabled


def autocast_increment_nesting() -> int:
    """Note that a region begins; returns how many are open in this thread.

    Returns:
        int: how many regions are open.

    Example:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _THREAD.settings.nesting += 1
    return _THREAD.settings.nesting


def autocast_decrement_nesting() -> int:
    """Note that a region ends; returns how many are still open in this thread.

    Returns:
        int: how many regions are still open.

    Example:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _THREAD.settings.nesting -= 1
    return _THREAD.settings.nesting


@uninterrupted
def autocast_nesting() -> int:
    """How many regions are open in this thread."""
    return _THREAD.settings.nesting


def set_autocast_nesting(nesting: int) -> None:
    """Say how many regions are open in this thread."""
    _THREAD.settings.nesting = nesting


def clear_autocast_cache() -> None:
    """Forget the casts of weights.

    Example:
        >>> torch.clear_autocast_cache()
    """
    _THREAD.settings.cache.clear()
    _THREAD.settings.ahead.end()


class AutocastState:
    """The settings of this thread at one moment, under which something may run again later."""

    def __init__(self) -> None:
        settings = _THREAD.settings
        self.enabled, self.dtypes, self.cache_enabled = settings.enabled, dict(settings.dtypes), settings.cache_enabled
        self.nesting = settings.nesting

    def restore(self) -> None:
        """Make the settings those of that moment, as often as it is called."""
        _THREAD.settings.dtypes, _THREAD.settings.cache_enabled = dict(self.dtypes), self.cache_enabled
        if self.enabled != _THREAD.settings.enabled:
            _enable(self.enabled)

    def replayed(self) -> Region:
        """A context with the settings of that moment."""
        return Region(self.restore)


class Region(Restoring):
    """A context around a region of autocast, which `begin` begins: the settings are put back at its end."""

    __slots__ = ("_begin", "_present")

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin, self._present = begin, AutocastState()

    def change(self) -> None:
        self._begin()
        _THREAD.settings.nesting = self._present.nesting + 1

    def restore(self) -> None:
        present = self._present
        _THREAD.settings.nesting = present.nesting
        present.restore()
        if present.nesting == 0:
            clear_autocast_cache()


def autocast_key() -> tuple[Any, ...] | None:
    """What of the settings of this thread decides what ops do, to be compared; None: autocast is off everywhere."""
    settings = _THREAD.settings
    return (*settings.enabled.items(), settings.cache_enabled) if CASTING else None


class own_casts(Restoring):
    """A context that shares no casts of weights with the region that it is in."""

    __slots__ = ("_before", "_cache")

    def __init__(self) -> None:
        self._cache = _THREAD.settings.cache
        self._before = dict(self._cache)

    def change(self) -> None:
        self._cache.clear()

    def restore(self) -> None:
        self._cache.clear()
        self._cache.update(self._before)


class switched_off(Restoring):
    """A context in which this thread casts nothing, as backward passes are run."""

    __slots__ = ("_present",)

    def __init__(self) -> None:
        self._present = AutocastState()

    def change(self) -> None:
        _enable({})

    def restore(self) -> None:
        self._present.restore()


# ----- the rules at work --------------------------------------------------------------------------------------------


def _enable(enabled: dict[str, dtype]) -> None:
    """Make `enabled` the types of devices with autocast in this thread."""
    settings, modes = _THREAD.settings, THREAD.modes
    is_inside = settings.enabled and modes.autocast is UNCAST  # in a function whose arguments were cast
    table = UNCAST if is_inside or not enabled else _table(enabled)
    # No call and no lock, so that an interrupt finds all of it done, or nothing.
    settings.enabled = enabled
    modes.autocast = table
    if enabled:
        CASTING[settings] = True
    elif settings in CASTING:
        del CASTING[settings]


def _table(enabled: dict[str, dtype]) -> Casts:
    """This thread's table for the types of devices with autocast."""
    key = tuple(enabled.items())
    found = _THREAD.tables.get(key)
    if found is None:
        found = _THREAD.tables[key] = CastingCalls(enabled, _THREAD.settings, THREAD.modes)
    return found


def run_uncast(body: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`body` of these arguments; no function in it is cast, whatever the rules say."""
    modes = THREAD.modes
    before, modes.autocast = modes.autocast, UNCAST
    try:
        return body(*args, **kwargs)
    finally:
        modes.autocast = before
