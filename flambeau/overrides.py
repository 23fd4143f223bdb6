"""`__torch_function__` for functions of one's own, under the names of `torch.overrides`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from ._core.modes import THREAD
from ._core.tensor import Tensor
from ._dispatch.public.namespaces import bound_to, is_unbound
from ._dispatch.public.overrides import (
    DisableTorchFunctionSubclass,
    FunctionMode,
    has_users_override,
    run_override,
    seen_by,
    users_overriding,
)
from ._dispatch.public.registry import FUNCTIONS, METHODS, load_all, resolved

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode",
    "enable_reentrant_dispatch", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property",
    "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])


class TorchFunctionMode(FunctionMode):
    """A context that is asked to run every public function of tensors, factories included.

    >>> class Loud(flambeau.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Loud():
    ...     x = flambeau.ones(2) + 1
    ones
    add

    What the function is made of is not seen, nor is what a backward pass runs: that is for `TorchDispatchMode`.
    """


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that runs every function as usual.

    Example:
        >>> with torch.overrides.BaseTorchFunctionMode():
        ...     torch.ones(1) + 1
        tensor([2.])
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


@bound_to("overrides")
def has_torch_function(namespace: Any, /, relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments wants to run functions its own way.

    Args:
        relevant_args (iterable): the arguments that may have `__torch_function__`.

    Returns:
        bool: whether one does.

    Example:
        >>> torch.overrides.has_torch_function((torch.ones(1), 2))
        False
    """
    return has_users_override(relevant_args)


@bound_to("overrides")
def has_torch_function_unary(namespace: Any, /, argument: Any) -> bool:
    """Whether one argument has a `__torch_function__` that has to be asked."""
    return has_users_override((argument,))


@bound_to("overrides")
def has_torch_function_variadic(namespace: Any, /, *arguments: Any) -> bool:
    """Whether one of the arguments has a `__torch_function__` that has to be asked."""
    return has_users_override(arguments)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let the arguments that want to run the function: call it where `has_torch_function` says so.

    >>> class Loud:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} was called"
    >>> def double(x):
    ...     if flambeau.overrides.has_torch_function((x,)):
    ...         return flambeau.overrides.handle_torch_function(double, (x,), x)
    ...     return x * 2
    >>> double(Loud())
    'double was called'

    Args:
        public_api (Callable): the function.
        relevant_args (iterable): the arguments that may have `__torch_function__`.
        *args: its positional arguments.
        **kwargs: its keyword arguments.

    Returns:
        what the first `__torch_function__` that does not decline returns.
    """
    return run_override(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Function], Function]:
    """Make a function heed `__torch_function__` of the arguments that the dispatcher picks.

    Args:
        dispatcher (Callable): a function of the same parameters that returns the arguments that may have
            `__torch_function__`.

    Returns:
        a decorator.

    Example:
        >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.ones(1))
        tensor([2.])
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_users_override(relevant):
                return run_override(wrapped, users_overriding(relevant), args, kwargs)
            return function(*args, **kwargs)

        return cast(Function, wrapped)

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor, or can run functions of tensors its own way.

    Args:
        inp: the value.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1.0)
        (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _module(space: str) -> Any:
    import importlib

    return importlib.import_module(f"flambeau.{space}" if space else "flambeau")


@functools.cache
def _overridable() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Callable[..., Any], str]]:
    load_all()
    spaces: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Callable[..., Any], str] = {}
    for space in ("", "nn.functional", "linalg", "fft", "special"):
        module = _module(space)
        functions = spaces[module] = []
        for name in sorted(FUNCTIONS.get(space, {})):
            function = getattr(module, name)
            if name.startswith("_") or not (name in METHODS or _takes_tensors(function)):
                continue
            functions.append(function)
            names.setdefault(function, ".".join(filter(None, ["torch", space, name])))
    methods = spaces[Tensor] = []
    for name in sorted(METHODS):
        if isinstance(METHODS[name], property):
            continue
        method = resolved(METHODS[name])
        methods.append(method)
        names.setdefault(method, f"torch.Tensor.{name}")
    return spaces, names


def _takes_tensors(function: Any) -> bool:
    """Whether one of a function's parameters may be a tensor, by what its signature says."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(word in str(each.annotation) for each in parameters for word in ("Tensor", "Operand"))


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that heed `__torch_function__`, by the module or class that has them.

    Returns:
        lists of functions by module or class.

    Example:
        >>> torch.add in torch.overrides.get_overridable_functions()[torch]
        True
    """
    return {owner: list(functions) for owner, functions in _overridable()[0].items()}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that heeds `__torch_function__` one with its parameters that gives -1.

    Returns:
        functions by function.

    Example:
        >>> torch.overrides.get_testing_overrides()[torch.add](1, 2)
        -1
    """
    return {function: _dummy(function) for functions in _overridable()[0].values() for function in functions}


def _dummy(function: Callable[..., Any]) -> Callable[..., Any]:
    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    with contextlib.suppress(ValueError, TypeError):
        vars(dummy)["__signature__"] = inspect.signature(function)
    return dummy


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The functions that do not heed `__torch_function__`: they take no tensor.

    Returns:
        the functions.

    Example:
        >>> torch.is_tensor in torch.overrides.get_ignored_functions()
        True
    """
    import flambeau

    overridable = _overridable()[1]
    functions = (getattr(flambeau, name) for name in FUNCTIONS[""])
    return {
        each
        for each in functions
        if (isinstance(each, types.FunctionType) or is_unbound(each)) and each not in overridable
    }


def resolve_name(f: Any) -> str | None:
    """The full name of a function of the package; None for others.

    Args:
        f: the function.

    Returns:
        str, optional: the name.

    Example:
        >>> torch.overrides.resolve_name(torch.add)
        'torch.add'
    """
    if isinstance(f, types.MethodWrapperType) or getattr(f, "__name__", None) == "__get__":
        owner = getattr(f, "__self__", None)
        name = getattr(owner, "__name__", None) or next(
            (each for each, value in vars(Tensor).items() if value is owner), None
        )
        return f"torch.Tensor.{name}.__get__" if name else None
    return _overridable()[1].get(f)


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether a function is a method of tensors, or the getter of a property.

    Args:
        func: the function.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
        True
    """
    return getattr(func, "__name__", None) == "__get__" or func in get_overridable_functions()[Tensor]


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode that sees every function."""
    return next(reversed(_get_current_function_mode_stack()), None)


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes that see every function, the innermost last."""
    return list(THREAD.modes.functions)


@bound_to("overrides")
def _len_torch_function_stack(namespace: Any, /) -> int:
    """How many modes see every function."""
    return len(THREAD.modes.functions)


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """A context without the innermost mode."""
    *outer, mode = THREAD.modes.functions
    with seen_by(tuple(outer)):
        yield mode


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A context in which ops of a subclass may call ops again: they always may.

    Returns:
        a context manager.

    Example:
        >>> with torch.overrides.enable_reentrant_dispatch():
        ...     torch.ones(1) + 1
        tensor([2.])
    """
    yield


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Run a function as it runs on plain tensors.

    Args:
        func (Callable): the function.
        types: the classes with `__torch_function__`.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Returns:
        its result.

    Example:
        >>> torch.overrides.redispatch_function(torch.add, (), (torch.ones(1), 1), {})
        tensor([2.])
    """
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))
