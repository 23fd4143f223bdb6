"""Autocast: ops that first bring their inputs to the precision that suits them.

A public function that has a rule looks at one list, `CASTING`, which is empty while no thread has autocast on: that is
all it costs then. Otherwise it calls `run_by_rule`, which asks the modes of the running thread. What a family makes of
such a function without calling the public one it has declared as `by_rule`. Elementwise functions ask on their long
path, which `Modes.cast` makes them take.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._core.device import device
from ..._core.dtype import bfloat16, dtype, float16, float32, float64
from ..._core.modes import THREAD
from ..._core.process.locks import new_lock
from ..._core.tensor import Tensor
from ..public.protocol import CASTING
from .autocast_rules import ELEMENTWISE, RULES

Function = Callable[..., Any]

_DTYPES = {
    "cpu": bfloat16,
    "cuda": float16,
    "hpu": bfloat16,
    "ipu": float16,
    "maia": bfloat16,
    "mps": float16,
    "mtia": float16,
    "privateuseone": float16,
    "xla": bfloat16,
    "xpu": float16,
}
"""The types of devices that autocast knows, and the dtype of each unless one is chosen."""


class _State(threading.local):
    """Autocast as one thread has it."""

    def __init__(self) -> None:
        self.enabled: dict[str, dtype] = {}
        self.dtypes = dict(_DTYPES)
        self.cache_enabled = True
        self.nesting = 0
        self.casting = False  # inside an op whose inputs were cast
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}


_STATE = _State()
_LOCK = new_lock()
_threads = 0


# ----- what is asked and set ----------------------------------------------------------------------------------------


def _device_type(name: Any, function: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(name).__name__}")
    kind: str = device(name).type
    if kind not in _DTYPES:
        raise RuntimeError(f"unknown device type for autocast in {function}: {kind!r}")
    return kind


def is_available(device_type: str) -> bool:
    """Whether autocast knows a type of device."""
    return device(device_type).type in _DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a type of device in this thread."""
    return _device_type(device_type, "is_autocast_enabled") in _STATE.enabled


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for some type of device in this thread."""
    return bool(_STATE.enabled)


def set_autocast_enabled(device_type: Any, enabled: Any = None) -> None:
    """Switch autocast for a type of device in this thread. With one argument, a bool, it is about CUDA."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' must be bool, not {type(enabled).__name__}")
    kind = _device_type(device_type, "set_autocast_enabled")
    now = {name: value for name, value in _STATE.enabled.items() if name != kind}
    if enabled:
        now[kind] = _STATE.dtypes[kind]
    _enable(now)


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that autocast uses on a type of device in this thread."""
    kind = device(device_type).type
    if kind not in _DTYPES:
        raise RuntimeError(f"unsupported scalarType: autocast has no dtype for {kind!r}")
    return _STATE.dtypes[kind]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Choose the dtype that autocast uses on a type of device in this thread."""
    kind = _device_type(device_type, "set_autocast_dtype")
    _STATE.dtypes[kind] = dtype
    if kind in _STATE.enabled:
        _enable(_STATE.enabled | {kind: dtype})


def is_autocast_cache_enabled() -> bool:
    """Whether the casts of weights are kept until the outermost region ends."""
    return _STATE.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Choose whether the casts of weights are kept until the outermost region ends."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _STATE.cache_enabled = enabled


def autocast_increment_nesting() -> int:
    """Note that a region begins; returns how many are open in this thread."""
    _STATE.nesting += 1
    return _STATE.nesting


def autocast_decrement_nesting() -> int:
    """Note that a region ends; returns how many are still open in this thread."""
    _STATE.nesting -= 1
    return _STATE.nesting


def clear_autocast_cache() -> None:
    """Forget the casts of weights."""
    _STATE.cache.clear()


class AutocastState:
    """The settings of this thread at one moment, under which something may run again later."""

    def __init__(self) -> None:
        self.enabled, self.dtypes, self.cache_enabled = _STATE.enabled, dict(_STATE.dtypes), _STATE.cache_enabled

    def restore(self) -> None:
        """Make the settings those of that moment."""
        _STATE.dtypes, _STATE.cache_enabled = dict(self.dtypes), self.cache_enabled
        if self.enabled != _STATE.enabled:
            _enable(self.enabled)

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """A context with the settings of that moment."""
        present = AutocastState()
        self.restore()
        autocast_increment_nesting()
        try:
            yield
        finally:
            if autocast_decrement_nesting() == 0:
                clear_autocast_cache()
            present.restore()


# ----- the rules at work --------------------------------------------------------------------------------------------


def _enable(enabled: dict[str, dtype]) -> None:
    """Make `enabled` the types of devices with autocast in this thread."""
    global _threads
    change = bool(enabled) - bool(_STATE.enabled)
    _STATE.enabled = enabled
    modes = THREAD.modes
    modes.cast = _cast_operands if any(ELEMENTWISE.get(kind) for kind in enabled) else None
    modes.refresh()
    if change:
        with _LOCK:
            _threads += change
            CASTING[:] = [True] if _threads else []


def run_by_rule(name: str, body: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`body`, the computation of the public function `name`, behind the casts that the rules want in this thread."""
    state = _STATE
    if not state.casting:
        for kind, target in state.enabled.items():
            rule = RULES.get(kind, {}).get(name)
            if rule is not None and any(_is_on(each, kind) for each in (*args, *kwargs.values())):
                return run_uncast(rule, (body, args, kwargs, Caster(kind, target)), {})
    return body(*args, **kwargs)


def run_uncast(body: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`body` of these arguments; no op in it is cast, whatever the rules say. (A rule itself is run so, too.)"""
    before, _STATE.casting = _STATE.casting, True
    try:
        return body(*args, **kwargs)
    finally:
        _STATE.casting = before


def _is_on(value: Any, kind: str) -> bool:
    if isinstance(value, Tensor):
        return value._kind.device.type == kind
    return isinstance(value, (list, tuple)) and any(_is_on(each, kind) for each in value)


def _cast_operands(name: str, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of the elementwise op `name` as the rules want them."""
    for kind, target in _STATE.enabled.items():
        rule = None if _STATE.casting else ELEMENTWISE.get(kind, {}).get(name)
        if rule is not None and any(_is_on(each, kind) for each in operands):
            caster = Caster(kind, target)
            cast: tuple[Any, ...] = run_uncast(rule, (lambda *cast: cast, operands, {}, caster), {})
            return cast
    return operands


# ----- the casts ----------------------------------------------------------------------------------------------------


class Caster:
    """The casts for one type of device: what a rule works with."""

    def __init__(self, kind: str, lower: dtype) -> None:
        self.kind = kind
        self.lower = lower

    def is_eligible(self, value: Any) -> bool:
        """Whether autocast touches a value at all: a tensor of real numbers on the device, not of double precision."""
        if not isinstance(value, Tensor) or value._kind.device.type != self.kind:
            return False
        return value.is_floating_point() and value._kind.dtype is not float64

    def cast(self, value: Any, target: dtype) -> Any:
        """`value`, or the tensors in a list of them, in another dtype; gradients flow back through the cast."""
        if isinstance(value, Tensor):
            if value._kind.dtype is target or not self.is_eligible(value):
                return value
            return self._cached(value, target) if target is self.lower else value.to(target)
        if type(value) is list or type(value) is tuple:
            return type(value)([self.cast(each, target) for each in value])
        return value

    def _cached(self, value: Any, target: dtype) -> Any:
        """A weight is cast once in a region: it is a leaf that needs a gradient."""
        is_weight = value._kind.dtype is float32 and value.requires_grad and value.is_leaf and value._view is None
        if not (is_weight and _STATE.cache_enabled and THREAD.modes.grad):
            return value.to(target)
        known = _STATE.cache.get(id(value))
        if known is None or known[1]._kind.dtype is not target:
            known = _STATE.cache[id(value)] = value, value.to(target)
        return known[1]

    def cast_all(self, args: tuple[Any, ...], kwargs: dict[str, Any], target: dtype) -> tuple[Any, Any]:
        """All arguments of a call in another dtype."""
        return (
            tuple([self.cast(each, target) for each in args]),
            {name: self.cast(each, target) for name, each in kwargs.items()},
        )

    def widest(self, args: tuple[Any, ...]) -> dtype:
        """The widest dtype among the tensors that autocast touches."""
        found = self.lower
        for each in args:
            if type(each) is list or type(each) is tuple:
                each_dtype = self.widest(tuple(each))
            elif self.is_eligible(each):
                each_dtype = each._kind.dtype
            else:
                continue
            if each_dtype is float32:
                found = float32
            elif each_dtype is not self.lower:
                raise RuntimeError(
                    f"Unexpected floating ScalarType in at::autocast::prioritize: {each_dtype} beside autocast's "
                    f"{self.lower}"
                )
        return found
