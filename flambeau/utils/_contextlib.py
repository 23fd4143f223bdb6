"""Contexts that are decorators too, under the names of `torch.utils._contextlib`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Any:
    """A function that runs in a context: `ctx` is one, or makes one for each call."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"Passed in {ctx} is both callable and also a valid context manager")
    make = ctx if callable(ctx) else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes: decorate their methods, or use a `with` block")
    if inspect.isgeneratorfunction(func):

        @functools.wraps(func)
        def generator(*args: Any, **kwargs: Any) -> Any:
            running = func(*args, **kwargs)
            try:
                with make():
                    value = running.send(None)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:  # noqa: PERF203
                        with make():
                            running.close()
                        raise
                    except BaseException as error:
                        with make():
                            value = running.throw(error)
                    else:
                        with make():
                            value = running.send(sent)
            except StopIteration as stop:
                return stop.value

        return generator

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return decorated


class _DecoratorContextManager:
    """The base of contexts that decorate functions as well."""

    def __call__(self, orig_func: Function) -> Function:
        return cast(Function, context_decorator(self.clone, orig_func))

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A context like this one."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without parameters, which decorates with and without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
