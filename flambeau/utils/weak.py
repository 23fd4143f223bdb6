"""Dictionaries that do not keep their keys alive, under the names of `torch.utils.weak`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from .._core.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to another if both are to the very same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        weakref.ref.__init__(self, key, callback)  # type: ignore[call-arg]  # typeshed has `__new__` alone
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        ours = self()
        theirs = other() if isinstance(other, WeakIdRef) else None
        if ours is not None and theirs is not None:
            return ours is theirs
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity that forgets an item when its key is gone."""

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type

        own = weakref.ref(self)

        def remove(reference: Any) -> None:
            alive = own()
            if alive is not None:
                alive.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data

    def pop(self, key: Any, *args: Any) -> Any:
        """The item of a key, which goes; without it what else is given, or a KeyError."""
        return self.data.pop(self.ref_type(key), *args)

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]  # PyTorch's name of it
        """Take over the items of another dictionary."""
        MutableMapping.update(self, () if dict is None else dict, **kwargs)

    def copy(self) -> WeakIdKeyDictionary:
        """A dictionary with the same items."""
        return type(self)(self)

    __copy__ = copy

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys."""
        return list(self.data)

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} at {id(self):#x}>"


class WeakTensorKeyDictionary(WeakIdKeyDictionary):
    """A dictionary with tensors as keys, which it does not keep alive."""


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
