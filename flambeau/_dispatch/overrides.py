"""`__torch_function__`: classes that want to run ops their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core.modes import THREAD
from .._core.subclasses import all_plain, disabled_torch_function, has_override, overriding, retype
from .._core.tensor import Tensor

__all__ = [
    "DisableTorchFunctionSubclass",
    "all_plain",
    "as_subclass_result",
    "default_torch_function",
    "disabled_torch_function",
    "has_override",
    "retype",
    "run_override",
]


def run_override(
    function: Callable[..., Any], relevant: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Ask the overriding arguments, subclasses first, then left to right, to run `function`."""
    found: list[Any] = []
    for value in overriding(relevant):
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


Tensor.__torch_function__ = classmethod(default_torch_function)  # type: ignore[attr-defined]
