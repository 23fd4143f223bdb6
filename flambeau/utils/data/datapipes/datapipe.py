"""`IterDataPipe` and `MapDataPipe`: datasets whose steps are methods of each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar, cast

from ..dataset import Dataset, IterableDataset
from ._iteration import one_at_a_time

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Hook = Callable[..., Any]

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]


class _Steps:
    """What both kinds of pipes have: steps by name, hooks for pickling, a name to print."""

    functions: ClassVar[dict[str, Hook]]
    reduce_ex_hook: ClassVar[Hook | None] = None
    getstate_hook: ClassVar[Hook | None] = None
    str_hook: ClassVar[Hook | None] = None
    repr_hook: ClassVar[Hook | None] = None

    def __getattr__(self, attribute_name: str) -> Any:
        step = self.functions.get(attribute_name)
        if step is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute_name!r}")
        method = functools.partial(step, self)
        functools.update_wrapper(method, step, assigned=("__doc__",))
        return method

    @classmethod
    def register_function(cls, function_name: str, function: Hook) -> None:
        """Make a function of a pipe a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of pipes a step: `pipe.name(...)` is `Class(pipe, ...)`."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def step(source: Any, *args: Any, **options: Any) -> Any:
            return cls_to_register(source, *args, **options)

        step.__doc__ = cls_to_register.__doc__
        cls.functions[function_name] = step

    def __getstate__(self) -> Any:
        hook = type(self).getstate_hook
        return hook(self.__dict__) if hook is not None else self.__dict__

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:  # the hook leaves this pipe to pickle
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Hook | None) -> None:
        """What becomes of the state of pipes that are pickled; None to end it."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Hook | None) -> None:
        """What is pickled in place of pipes; None to end it."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return str(hook(self)) if hook is not None else type(self).__qualname__

    def __str__(self) -> str:
        hook = type(self).str_hook
        return str(hook(self)) if hook is not None else type(self).__qualname__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Steps, IterableDataset[T_co]):
    """A dataset that is read from the start to the end, and whose methods are further steps.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> [list(batch) for batch in IterableWrapper(range(5)).batch(2)]
    [[0, 1], [2, 3], [4]]
    """

    functions: ClassVar[dict[str, Hook]] = {}
    _valid_iterator_id = 0
    _number_of_samples_yielded = 0
    _counts_its_iterators = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        begin = cls.__dict__.get("__iter__")
        if begin is not None and not cls._counts_its_iterators:
            setattr(cls, "__iter__", one_at_a_time(begin))  # noqa: B010  (as text: the type checker forbids it)

    @one_at_a_time
    def __iter__(self) -> Iterator[T_co]:
        return cast(Iterator[T_co], self)  # a class may define `__next__` alone

    def reset(self) -> None:
        """Be ready to be read from the start: called before every iteration."""


class DFIterDataPipe(IterDataPipe[T_co]):
    """A pipe of tables.

    Example:
        >>> issubclass(torch.utils.data.DFIterDataPipe, torch.utils.data.IterDataPipe)
        True
    """

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Steps, Dataset[T_co]):
    """A dataset that is read by index, and whose methods are further steps.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> list(SequenceWrapper([1, 2]).map(str))
        ['1', '2']
    """

    functions: ClassVar[dict[str, Hook]] = {}


class DataChunk(list[T]):
    """A batch: a list that remembers what it was made of.

    Args:
        items: the samples.

    Example:
        >>> torch.utils.data.DataChunk([1, 2])
        [1, 2]
    """

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples in brackets, after an indent."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self) -> Iterator[T]:
        """The samples as they came in."""
        yield from self.items


class _DataPipeSerializationWrapper:
    """A pipe that travels to workers as it is: whatever pickles it, pickles this."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe[Any]):
    """A pipe that is iterated over, made so that it can be pickled."""

    def __init__(self, datapipe: IterDataPipe[Any]) -> None:
        super().__init__(datapipe)
        self._datapipe_iter: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        self._datapipe_iter = iter(self._datapipe)
        return self

    def __next__(self) -> Any:
        if self._datapipe_iter is None:
            raise AssertionError("Iterator has not been initialized; call __iter__() before __next__()")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe[Any]):
    """A pipe with items, made so that it can be pickled."""

    def __getitem__(self, idx: Any) -> Any:
        return self._datapipe[idx]
