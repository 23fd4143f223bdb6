"""Lists and dicts whose elements are all of one type, as scripted programs hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._core.tensor import Tensor
from ._types import (
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    StringType,
    TensorType,
    TupleType,
    Type,
    unify_type_list,
)

_PLAIN = (
    (bool, BoolType),
    (int, IntType),
    (float, FloatType),
    (complex, ComplexType),
    (str, StringType),
    (Tensor, TensorType),
)


def type_of(value: Any) -> Type:
    """The type of a value; a TypeError if TorchScript has none for it."""
    if value is None:
        return NoneType()
    for kind, made in _PLAIN:
        if isinstance(value, kind):
            return made()
    if isinstance(value, tuple):
        return TupleType([type_of(each) for each in value])
    if isinstance(value, (list, ScriptList)):
        return ListType(_common([type_of(each) for each in value]))
    if isinstance(value, (dict, ScriptDict)):
        pairs = list(value.items())
        return DictType(_common([type_of(key) for key, _ in pairs]), _common([type_of(item) for _, item in pairs]))
    raise TypeError(f"there is no type of TorchScript for values of {type(value).__name__}")


def _common(found: list[Type]) -> Type:
    return unify_type_list(found) if found else TensorType()


def _checked(value: Any, wanted: Type) -> Any:
    if isinstance(value, ScriptList | ScriptDict):
        value = value._content
    if not type_of(value).isSubtypeOf(wanted) and not (isinstance(value, (list, dict)) and not value):
        raise TypeError(f"expected a value of type {wanted}, but got {value!r} of {type(value).__name__}")
    return value


class ScriptListIterator(Iterator[Any]):
    """The elements of a `ScriptList`."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source

    def __next__(self) -> Any:
        return next(self._source)


class ScriptDictIterator(ScriptListIterator):
    """The pairs of a `ScriptDict`."""


class ScriptDictKeyIterator(ScriptListIterator):
    """The keys of a `ScriptDict`."""


class ScriptList:
    """A list with elements of one type."""

    def __init__(self, content: Iterable[Any] = ()) -> None:
        self._content = list(content)
        try:
            self._element = _common([type_of(each) for each in self._content])
        except RuntimeError as error:
            raise TypeError(f"Unable to infer type of list: {error}") from None

    def __repr__(self) -> str:
        return _shown(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> ScriptListIterator:
        return ScriptListIterator(iter(self._content))

    def __contains__(self, value: object) -> bool:
        return value in self._content

    def __getitem__(self, index: Any) -> Any:
        found = self._content[index]
        return ScriptList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._content[index] = [_checked(each, self._element) for each in value]
        else:
            self._content[index] = _checked(value, self._element)

    def __delitem__(self, index: Any) -> None:
        del self._content[index]

    def append(self, value: Any) -> None:
        """Add an element at the end."""
        if not self._content:
            self._element = type_of(value)
        self._content.append(_checked(value, self._element))

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements at the end."""
        for each in values:
            self.append(each)

    def insert(self, index: int, value: Any) -> None:
        """Add an element at a place."""
        self._content.insert(index, _checked(value, self._element))

    def pop(self, index: int = -1) -> Any:
        """Take an element out."""
        return self._content.pop(index)

    def remove(self, value: Any) -> None:
        """Take out the first element with this value."""
        self._content.remove(value)

    def count(self, value: Any) -> int:
        """How many elements have this value."""
        return self._content.count(value)

    def clear(self) -> None:
        """Take out all elements."""
        self._content.clear()


class ScriptDict:
    """A dict with keys of one type and values of one type."""

    def __init__(self, content: dict[Any, Any]) -> None:
        self._content = dict(content)
        found = type_of(self._content)
        assert isinstance(found, DictType)
        self._type = found

    def __repr__(self) -> str:
        return _shown(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> ScriptDictKeyIterator:
        return self.keys()

    def __contains__(self, key: object) -> bool:
        return key in self._content

    def __getitem__(self, key: Any) -> Any:
        return self._content[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        wanted = self._type
        self._content[_checked(key, wanted.getKeyType())] = _checked(value, wanted.getValueType())

    def __delitem__(self, key: Any) -> None:
        del self._content[key]

    def keys(self) -> ScriptDictKeyIterator:
        """The keys."""
        return ScriptDictKeyIterator(iter(self._content))

    def items(self) -> ScriptDictIterator:
        """The pairs."""
        return ScriptDictIterator(iter(self._content.items()))


def _shown(value: Any) -> str:
    """A value as TorchScript prints it: text without quotes."""
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(item)}" for key, item in value.items()) + "}"
    return str(value)
