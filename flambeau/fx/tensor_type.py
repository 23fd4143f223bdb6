"""Types of tensors for graphs: sizes of dimensions, each a number or not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _DynType:
    """What is not known."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


class TensorType:
    """A tensor with these sizes: `TensorType((1, 2, Dyn))`."""

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        found = args[0]
        return TensorType(tuple(found) if isinstance(found, tuple) else found)


def is_consistent(t1: object, t2: object) -> bool:
    """Whether two types can be those of one tensor: they agree where both are known."""
    if t1 in (t2, Dyn) or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        pairs = zip(t1.__args__, t2.__args__, strict=False)
        return len(t1.__args__) == len(t2.__args__) and all(is_consistent(left, right) for left, right in pairs)
    return False


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether the first type says all that the second does."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        pairs = zip(t1.__args__, t2.__args__, strict=False)
        return len(t1.__args__) == len(t2.__args__) and all(is_more_precise(left, right) for left, right in pairs)
    return False
