"""Functions of sparse tensors, under the names of `torch.sparse`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from .._dispatch.public.registry import namespace

_function_named, __all__, __dir__ = namespace("sparse")
__all__ += ["as_sparse_gradcheck", "check_sparse_tensor_invariants"]


class check_sparse_tensor_invariants:
    """PyTorch's switch for the check that indices are within a tensor; a context, and a decorator.

    Here they are checked in any case: the switch remembers its state and changes nothing else.

    Args:
        enable (bool): whether to check. Default: `True`.

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))
        Traceback (most recent call last):
            ...
        RuntimeError: size is inconsistent with indices: for dim 0, size is 3 but found index 5
    """

    _state: ClassVar[bool] = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether the switch is on."""
        return check_sparse_tensor_invariants._state

    @staticmethod
    def enable() -> None:
        """Switch it on."""
        check_sparse_tensor_invariants._state = True

    @staticmethod
    def disable() -> None:
        """Switch it off."""
        check_sparse_tensor_invariants._state = False

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        check_sparse_tensor_invariants._state = self._wanted

    def __exit__(self, *exception: object) -> None:
        check_sparse_tensor_invariants._state = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck`, or a function like it, for functions whose inputs or results are sparse.

    The function is checked as one of the values that sparse inputs hold, at the same places; with `masked=False` as one
    of all elements, those that are zero included.

    >>> check = flambeau.sparse.as_sparse_gradcheck(flambeau.autograd.gradcheck)
    >>> matrix = flambeau.eye(2, dtype=flambeau.float64).to_sparse().requires_grad_()
    >>> check(lambda x: x * 2, (matrix,))
    True

    Args:
        gradcheck (Callable): `torch.autograd.gradcheck`, or a function like it.

    Returns:
        a function with its arguments, and `masked`: whether only specified elements count.
    """
    from ._gradcheck import checked_as_dense

    return checked_as_dense(gradcheck)


def __getattr__(name: str) -> Any:
    if "emi_structured" in name or "SemiStructured" in name:
        import importlib

        found = importlib.import_module("flambeau.sparse.semi_structured")
        return found if name == "semi_structured" else getattr(found, name)
    if name.endswith("Tensor"):
        from .._ops.sparse.legacy import CLASSES

        if name in CLASSES:
            return CLASSES[name]
    return _function_named(name)
