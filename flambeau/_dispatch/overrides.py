"""`__torch_function__`: classes that want to run ops their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core.modes import THREAD
from .._core.tensor import PLAIN_TYPES, Tensor

_NEVER = frozenset({bool, int, float, complex, str, type(None)})
"""Types of arguments that override nothing."""


def has_override(values: Iterable[Any]) -> bool:
    """Whether one of `values` (or of the lists among them) has a `__torch_function__` of its own that is to be
    heeded.
    """
    for value in values:
        kind = type(value)
        if kind in PLAIN_TYPES or kind in _NEVER:
            continue
        if (kind is list or kind is tuple) and all_plain(value):
            continue
        return any(True for _ in _overriding(values))
    return False


def all_plain(values: Iterable[Any]) -> bool:
    """Whether `values` are nothing but tensors of the plain classes."""
    for value in values:  # noqa: SIM110  (quicker than a generator, on the path of every list of tensors)
        if type(value) not in PLAIN_TYPES:
            return False
    return True


def _overriding(values: Iterable[Any]) -> Iterable[Any]:
    """The values whose class is to be asked: none of the users' classes while those are disabled."""
    disabled = THREAD.modes.overrides_disabled
    for value in values:
        kind = type(value)
        if kind in PLAIN_TYPES:
            continue
        if kind is tuple or kind is list:
            yield from _overriding(value)
        elif (
            hasattr(kind, "__torch_function__")
            and kind.__torch_function__ is not disabled_torch_function
            and (not disabled or getattr(kind, "_has_no_other_ops", False))
        ):
            yield value


def run_override(
    function: Callable[..., Any], relevant: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Ask the overriding arguments, subclasses first, then left to right, to run `function`."""
    found: list[Any] = []
    for value in _overriding(relevant):
        if not any(type(value) is type(other) for other in found):
            position = next((i for i, other in enumerate(found) if issubclass(type(value), type(other))), len(found))
            found.insert(position, value)
    types = tuple(type(value) for value in found)
    for value in found:
        result = value.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{function.__name__}' on types that implement __torch_function__: "
        f"{[each.__name__ for each in types]}"
    )


def disabled_torch_function(*args: Any, **kwargs: Any) -> Any:
    """As a class's `__torch_function__`: its instances run ops as plain tensors do."""
    return NotImplemented


class DisableTorchFunctionSubclass:
    """A context in which no `__torch_function__` is called."""

    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.overrides_disabled
        modes.overrides_disabled = True

    def __exit__(self, *exception: object) -> None:
        THREAD.modes.overrides_disabled = self._before


def default_torch_function(
    cls: type, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """What subclasses do unless they say otherwise: run the op, and give results the subclass's type."""
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return as_subclass_result(result, cls)


def as_subclass_result(result: Any, cls: type) -> Any:
    """`result` with the tensors in it turned into `cls`."""
    if isinstance(result, Tensor):
        keeps_class = isinstance(result, cls) or hasattr(type(result), "_has_no_other_ops")
        return result if keeps_class else retype(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(as_subclass_result(each, cls) for each in result))
    if isinstance(result, (tuple, list)):
        return type(result)(as_subclass_result(each, cls) for each in result)
    return result


def retype(tensor: Tensor, cls: type) -> Any:
    """The same tensor, place in the graph included, as an instance of the subclass `cls`."""
    retyped: Any = object.__new__(cls)
    for slot in ("_array", "_kind", "_counter", "_requires_grad", "_grad_fn", "_output_nr", "_grad", "_view", "_extra"):
        setattr(retyped, slot, getattr(tensor, slot))
    return retyped


Tensor.__torch_function__ = classmethod(default_torch_function)  # type: ignore[attr-defined]
