"""Modes that run every operator their own way, under the names of `torch.utils._python_dispatch`.

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print(func)
            return func(*args, **(kwargs or {}))

    with Log():
        ...

A mode is an interpreter: it sees what runs below autograd, the ops of backward passes included, and what it calls goes
to the mode around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.modes import THREAD
from .._core.process.interrupts import uninterrupted
from .._core.tensor import Tensor
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op
from .._dispatch.public.class_dispatch import dispatching_types
from .._dispatch.public.overloads import as_results, operator_call

__all__ = [
    "BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing", "transform_subclass",
]  # fmt: skip


class TorchDispatchMode(Interpreter):
    """A context that is asked to run every operator: override `__torch_dispatch__`."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The results of the operator `func`; `types` are the classes among the arguments that dispatch themselves."""
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__")

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        func, positional, kwargs = operator_call(op, args)
        result = self.__torch_dispatch__(func, dispatching_types(positional), positional, kwargs)
        if result is NotImplemented:
            raise TypeError(f"{type(self).__name__}.__torch_dispatch__ gave NotImplemented for {func}")
        return as_results(result)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """A new mode, to be entered: the older way to say `Mode()`."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that runs every operator as usual."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The modes that are entered, the innermost last."""
    return [each for each in THREAD.modes.interpreters if isinstance(each, TorchDispatchMode)]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost dispatch mode that is entered."""
    return next(reversed(_get_current_dispatch_mode_stack()), None)


def _len_torch_dispatch_stack() -> int:
    """How many modes are entered."""
    return len(_get_current_dispatch_mode_stack())


class _disable_current_modes:
    """A context without the modes that are entered; classes of tensors still dispatch themselves."""

    @uninterrupted
    def __enter__(self) -> list[TorchDispatchMode]:
        modes = THREAD.modes
        self._before, disabled = modes.interpreters, _get_current_dispatch_mode_stack()
        left = tuple([each for each in self._before if not isinstance(each, TorchDispatchMode)])
        modes.interpreters = left
        modes.refresh()
        return disabled

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.interpreters = self._before
        modes.refresh()


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says how it is taken apart and put together again."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__")


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a value is a tensor of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A wrapper with each of its inner tensors replaced by `callback(name, inner)`."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Sequence[Any], kwargs: dict[str, Any] | None, out: Any) -> Any:
    """What a wrapper's `__torch_dispatch__` should return: of an operator that changes its first argument, that one.

    That a view shares memory with its base is noted by autograd, outside of the wrapper.
    """
    if func.__name__.partition(".")[0].endswith("_") and not func.__name__.startswith("__"):
        return args[0]
    if kwargs and kwargs.get("out") is not None:
        return kwargs["out"]
    return out
