"""Decorators for classes of pipes: the name of the step, and whether the order of its samples is certain."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from .datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """`@functional_datapipe("name")`: the class is a step, `pipe.name(...)`.

    Args:
        name (str): the name of the step.
        enable_df_api_tracing (bool): whether tables are traced. Default: `False`.

    Example:
        >>> @torch.utils.data.functional_datapipe("doubled_in_docs")
        ... class Doubled(torch.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * each for each in self.source)
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).doubled_in_docs())
        [2, 4]
    """

    name: str

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        """Register the class with the kind of pipes that it is."""
        for kind in (IterDataPipe, MapDataPipe):
            if issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
                return cls
        return cls


class guaranteed_datapipes_determinism:
    """While it is entered, pipes whose order is not certain cannot be made.

    Example:
        >>> with torch.utils.data.guaranteed_datapipes_determinism():
        ...     pass
    """

    _active: ClassVar[bool] = False
    prev: bool

    def __init__(self) -> None:
        self.prev = guaranteed_datapipes_determinism._active
        guaranteed_datapipes_determinism._active = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        guaranteed_datapipes_determinism._active = self.prev


class non_deterministic:
    """Mark a class whose samples may come in any order: always, or where a function of its arguments says so.

    Args:
        arg: the class, or a function of the constructor's arguments.

    Example:
        >>> @torch.utils.data.non_deterministic
        ... class Unordered(torch.utils.data.IterDataPipe):
        ...     def __iter__(self):
        ...         return iter({1, 2})
        >>> sorted(Unordered())
        [1, 2]
    """

    cls: type | None = None
    deterministic_fn: Callable[..., bool]

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """An instance of the decorated class, or, where a function was given first, the decorated class."""
        if self.cls is not None:
            if guaranteed_datapipes_determinism._active:
                raise TypeError(
                    f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You "
                    "can turn off determinism for this DataPipe if that is acceptable for your application"
                )
            return self.cls(*args, **kwargs)
        cls = args[0]
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {getattr(cls, '__name__', cls)} is found")
        self.cls = cls
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class, unless the function says that its order would not be certain."""
        uncertain = self.deterministic_fn(*args, **kwargs)
        if not isinstance(uncertain, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, "
                f"but {type(uncertain)} is found"
            )
        assert self.cls is not None
        if uncertain and guaranteed_datapipes_determinism._active:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic with the inputs, but you set "
                "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if that is "
                "acceptable for your application"
            )
        return self.cls(*args, **kwargs)


def argument_validation(f: Any) -> Any:
    """Check that arguments annotated as pipes are pipes.

    Args:
        f: the function.

    Returns:
        the function, checked.

    Example:
        >>> @torch.utils.data.argument_validation
        ... def first(pipe: torch.utils.data.IterDataPipe):
        ...     return next(iter(pipe))
    """
    signature = inspect.signature(f)
    kinds = (IterDataPipe, MapDataPipe)

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            wanted = getattr(signature.parameters[name].annotation, "__origin__", signature.parameters[name].annotation)
            if isinstance(wanted, type) and issubclass(wanted, kinds) and not isinstance(value, wanted):
                raise TypeError(f"Expected argument '{name}' as a {wanted.__name__}, but found {type(value)}")
        return f(*args, **kwargs)

    return checked


_validates = True


class runtime_validation_disabled:
    """While it is entered, samples are not compared with the pipe's annotated type.

    Example:
        >>> with torch.utils.data.runtime_validation_disabled():
        ...     pass
    """

    prev: bool

    def __init__(self) -> None:
        global _validates
        self.prev = _validates
        _validates = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        global _validates
        _validates = self.prev


def runtime_validation(f: Any) -> Any:
    """For an `__iter__` annotated `-> Iterator[X]`, X a class: samples that are no X are an error.

    Args:
        f: the `__iter__`.

    Returns:
        the method, checked.

    Example:
        >>> class Numbers(torch.utils.data.IterDataPipe[int]):
        ...     @torch.utils.data.runtime_validation
        ...     def __iter__(self):
        ...         return iter([1, 2])
        >>> list(Numbers())
        [1, 2]
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")
    annotation = inspect.signature(f).return_annotation
    wanted = getattr(annotation, "__args__", (object,))[0]

    @functools.wraps(f)
    def checked(self: Any) -> Any:
        for sample in f(self):
            if _validates and isinstance(wanted, type) and not isinstance(sample, wanted):
                raise RuntimeError(f"Expected an instance as subtype of {wanted}, but found {sample}({type(sample)})")
            yield sample

    return checked
