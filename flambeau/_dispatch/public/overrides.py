"""`__torch_function__`: classes and modes that want to run public functions their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..._core.modes import THREAD
from ..._core.process.interrupts import uninterrupted
from ..._core.process.locks import new_lock
from ..._core.subclasses import (
    all_plain,
    disabled_torch_function,
    has_override,
    has_users_override,
    overriding,
    retype,
    users_overriding,
)
from ..._core.tensor import DIRECT_TYPES, PLAIN_TYPES, Tensor

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "FunctionMode",
    "all_plain",
    "as_subclass_result",
    "default_torch_function",
    "disabled_torch_function",
    "has_override",
    "has_users_override",
    "original_of",
    "retype",
    "run_override",
    "run_watched",
    "seen_by",
    "shown_as_function",
    "users_overriding",
]

Result = TypeVar("Result")
_PACKAGE = __name__.partition(".")[0]


ARRANGED: dict[str, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {}
"""By the name of a function how its arguments are arranged for those who override it, where it may be called in several
ways."""

_SHOWN = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__mod__": "remainder",
    "__pow__": "pow", "__matmul__": "matmul", "__ne__": "ne", "__lt__": "lt", "__gt__": "gt", "__le__": "le",
    "__ge__": "ge", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__ipow__": "pow_", "__rtruediv__": "__rdiv__",
    "__radd__": "add", "__rmul__": "mul", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}  # fmt: skip
"""Operators that PyTorch's tensors have other methods for: those are what a `__torch_function__` is given."""


def shown_as_function(operator: str) -> bool:
    """Whether a `__torch_function__` is given the function of an operator, and not the operator itself."""
    return operator in _SHOWN


def run_override(
    function: Callable[..., Result], relevant: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Result:
    """Ask the innermost mode, then the overriding arguments, subclasses first, to run `function`.

    What they return may be anything; to the package's own code it is what the function would have returned.
    """
    result: Result
    if function.__name__ in _SHOWN:
        function = getattr(Tensor, _SHOWN[function.__name__])
    if function.__name__ in ARRANGED:
        args = ARRANGED[function.__name__](args)
    found: list[Any] = []
    for value in overriding(relevant):
        if not any(type(value) is type(other) for other in found):
            position = next((i for i, other in enumerate(found) if issubclass(type(value), type(other))), len(found))
            found.insert(position, value)
    types = tuple(type(value) for value in found)
    modes = THREAD.modes
    if modes.functions:
        *outer, mode = modes.functions
        shown = _as_called(function, args, kwargs) if _is_users(mode.__torch_function__) else (args, kwargs)
        with seen_by(tuple(outer)):  # what the mode calls goes to the one around it
            result = mode.__torch_function__(function, types, *shown)
        if result is not NotImplemented:
            return result
    for value in found:
        shown = _as_called(function, args, kwargs) if _is_users(value.__torch_function__) else (args, kwargs)
        result = value.__torch_function__(function, types, *shown)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{function.__name__}' on types that implement __torch_function__: "
        f"{[each.__name__ for each in types]}"
    )


def _is_users(override: Any) -> bool:
    """Whether a `__torch_function__` was not written in this package."""
    return (getattr(override, "__module__", None) or "").partition(".")[0] != _PACKAGE


def _as_called(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the caller gave them: users' implementations need not have parameters for all."""
    from .call_form import as_called

    call = as_called(function, args, kwargs)
    return call.args, call.kwargs


def original_of(function: Any) -> Any:
    """The function for which an alias stands: `mul` for `multiply`; any other as it is."""
    return getattr(function, "stands_for", function)


def run_watched(function: Callable[..., Result], args: tuple[Any, ...], options: dict[str, Any]) -> Result:
    """Let the innermost mode run a function that takes no tensors; `options` that say nothing are left out."""
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    return run_override(function, (), args, given)


class seen_by:
    """A context in which `functions` are the modes of this thread that see every function."""

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self._functions = functions

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before, modes.functions = modes.functions, self._functions
        modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.functions = self._before
        modes.refresh()


class FunctionMode:
    """A context that is asked to run every public function: see `torch.overrides.TorchFunctionMode`."""

    _LOCK = new_lock()
    _entered = 0
    """How often modes are entered at present, in all threads."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """The result of `func`; `types` are the classes among the arguments that override functions."""
        raise NotImplementedError(f"{type(self).__name__} has no __torch_function__")

    def __enter__(self) -> Any:
        modes = THREAD.modes
        before = modes.functions
        try:
            with FunctionMode._LOCK:
                DIRECT_TYPES.clear()
                FunctionMode._entered += 1
                modes.functions = (*before, self)
                modes.refresh()
        except BaseException:  # the user's interrupt
            self._leave(before)
            raise
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        functions = THREAD.modes.functions
        assert functions[-1] is self, "modes are left in the order opposite to that of entering"
        try:
            self._leave(functions[:-1])
        except BaseException:
            self._leave(functions[:-1])
            raise

    @staticmethod
    @uninterrupted
    def _leave(before: tuple[Any, ...]) -> None:
        """Make `before` the modes, if they are not, and count the one that ends."""
        modes = THREAD.modes
        with FunctionMode._LOCK:
            if modes.functions is not before and modes.functions[:-1] == before:
                FunctionMode._entered -= 1
                modes.functions = before
                modes.refresh()
            if not FunctionMode._entered:
                DIRECT_TYPES.update(PLAIN_TYPES)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A new mode, to be entered: the older way to say `Mode()`."""
        return cls(*args, **kwargs)


class DisableTorchFunctionSubclass:
    """A context in which no `__torch_function__` of a class is called.

    Example:
        >>> with torch._C.DisableTorchFunctionSubclass():
        ...     torch.nn.Parameter(torch.ones(1)) + 1
        tensor([2.], grad_fn=<AddBackward0>)
    """

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.overrides_disabled
        modes.overrides_disabled = True

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        THREAD.modes.overrides_disabled = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A context in which no `__torch_function__` is called, of neither classes nor modes.

    Example:
        >>> with torch._C.DisableTorchFunction():
        ...     torch.ones(1) + 1
        tensor([2.])
    """

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._functions = modes.functions
        self._before = modes.overrides_disabled
        modes.overrides_disabled = True
        modes.functions = ()
        modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.overrides_disabled = self._before
        modes.functions = self._functions
        modes.refresh()


def default_torch_function(
    cls: type, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """What subclasses do unless they say otherwise: run the op, and give results the subclass's type."""
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    attribute = getattr(func, "__self__", None) if func.__name__ == "__get__" else None
    if attribute is not None and attribute in (Tensor.grad, Tensor._base):
        return result  # a tensor that was there before, of its own class
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


Tensor.__torch_function__ = classmethod(default_torch_function)
