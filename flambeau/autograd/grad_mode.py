"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from .._core.modes import THREAD
from .._core.process.interrupts import uninterrupted

Function = TypeVar("Function", bound=Callable[..., Any])


class _ContextDecorator:
    """A context manager that also decorates functions, generator functions (resumed each time in its mode) and
    classes.
    """

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A fresh context of the same meaning: decorated functions may be re-entered."""
        return type(self)()

    def __call__(self, function: Function) -> Function:
        if inspect.isclass(function):
            import warnings

            warnings.warn(
                f"Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                f"decorate the `__init__` method of {function.__name__} and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            # `isclass` says that it is a class, but of a function's type.
            function.__init__ = self(function.__init__)  # type: ignore[method-assign]
            return function
        if inspect.isgeneratorfunction(function):
            return cast(Function, self._around_generator(function))

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return cast(Function, decorated)

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    with self.clone():
                        item = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
                else:
                    resume = functools.partial(generator.send, sent)

        return decorated


class _FixedGradMode(_ContextDecorator):
    enabled = True

    def __new__(cls, orig_func: Any = None) -> Any:
        context = object.__new__(cls)
        return context if orig_func is None else context(orig_func)  # `@no_grad` without parentheses

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.grad
        modes.grad = self.enabled

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        THREAD.modes.grad = self._before


class no_grad(_FixedGradMode):
    """Operations in this context are not recorded, whatever their inputs require.

    >>> x = flambeau.ones(2, requires_grad=True)
    >>> with flambeau.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False

    Args:
        orig_func: a function to decorate; None makes a context.
    """

    enabled = False


class enable_grad(_FixedGradMode):
    """Operations in this context are recorded again, inside a `no_grad` or outside.

    Args:
        orig_func: a function to decorate; None makes a context.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    enabled = True


class set_grad_enabled(_ContextDecorator):
    """Switch recording on or off: as a function from now on, as a context for its block.

    Args:
        mode (bool): whether operations are recorded.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     (x * 2).requires_grad
        False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        modes = THREAD.modes
        self.mode = mode
        self.prev = modes.grad
        modes.grad = self.mode

    def __call__(self, function: Function) -> Function:
        THREAD.modes.grad = self.prev  # a decorator changes nothing until the function is called
        return super().__call__(function)

    @uninterrupted
    def __enter__(self) -> None:
        THREAD.modes.grad = self.mode

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        THREAD.modes.grad = self.prev

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)


class inference_mode(_ContextDecorator):
    """Nothing is recorded and no versions are counted; tensors made here stay out of autograd for good.

    Args:
        mode: whether it is on; or a function to decorate. Default: `True`.

    Example:
        >>> with torch.inference_mode():
        ...     y = torch.ones(1, requires_grad=True) * 2
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        context = object.__new__(cls)
        context.mode = True
        return context(mode)  # `@inference_mode` without parentheses

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.inference, modes.grad
        modes.inference = self.mode
        modes.grad = not self.mode
        modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.inference, modes.grad = self._before
        modes.refresh()

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread now.

    Returns:
        bool: whether they are.

    Example:
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False
    """
    return THREAD.modes.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode now.

    Returns:
        bool: whether it is.

    Example:
        >>> with torch.inference_mode():
        ...     torch.is_inference_mode_enabled()
        True
    """
    return THREAD.modes.inference


class set_multithreading_enabled(_ContextDecorator):
    """Whether backward passes may run on several threads: here they run in the caller's, whatever is chosen."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def clone(self) -> Any:
        """A fresh context of the same meaning."""
        return type(self)(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


class enforce_grad_layout_policy(_ContextDecorator):
    """Whether the gradients of leaves get the strides of the leaves; otherwise a gradient may keep its own."""

    def __init__(self, enable: bool = True) -> None:
        self.enable = enable

    def clone(self) -> enforce_grad_layout_policy:
        """A fresh context of the same meaning."""
        return type(self)(self.enable)

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.grad_layout
        modes.grad_layout = self.enable

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        THREAD.modes.grad_layout = self._before


class _force_original_view_tracking(set_multithreading_enabled):
    """Whether views remember how they were made: here they always do."""
