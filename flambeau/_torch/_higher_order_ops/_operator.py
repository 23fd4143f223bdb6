"""`HigherOrderOperator`: operators that take functions, which libraries define as subclasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flambeau._dispatch.public.keys import DispatchKey

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

_IN_ORDER = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd", "CPU", "CUDA")
"""Which implementation a call takes: the first of those that there are."""


class HigherOrderOperator:
    """An operator that takes functions. A call runs the implementation that was registered for it.

    Args:
        name (str): its name.
        cacheable (bool): not used.
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self.namespace = "higher_order"
        self._implementations: dict[str, Callable[..., Any]] = {}

    def name(self) -> str:
        """The name of the operator in `torch.ops.higher_order`."""
        return self._name

    def py_impl(self, k: Any) -> Callable[[Implementation], Implementation]:
        """A decorator that registers an implementation for a dispatch key, a mode or a transform."""

        def register(function: Implementation) -> Implementation:
            key = k.name if isinstance(k, DispatchKey) else str(k)
            if key in self._implementations:
                raise AssertionError(f"Trying to override a python impl for {key} on operator {self._name}")
            self._implementations[key] = function
            return function

        return register

    def fallthrough(self, dispatch_key: Any) -> None:
        """Say that a dispatch key has nothing to do here."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        for key in _IN_ORDER:
            if key in self._implementations:
                return self._implementations[key](*args, **kwargs)
        raise NotImplementedError(f"There is no implementation of the operator {self._name}: register one by py_impl")

    def __str__(self) -> str:
        return self._name
