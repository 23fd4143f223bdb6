"""Lists and dicts that nobody changes: what the arguments of a node are made of, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from ..utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. The arguments of a node are changed by assigning "
        "new ones: node.args = ..., node.kwargs = ..."
    )


class immutable_list(list[T]):
    """A list that cannot be changed."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[K, V]):
    """A dict that cannot be changed."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


# Not in the classes: what they inherit from says that it has no hash.
_classes: Any = immutable_list, immutable_dict
_classes[0].__hash__ = lambda self: hash(tuple(self))
_classes[1].__hash__ = lambda self: hash(frozenset(self.items()))


def _list_again(values: Iterable[Any], context: Any) -> immutable_list[Any]:
    return immutable_list(values)


def _dict_again(values: Iterable[Any], context: Any) -> immutable_dict[Any, Any]:
    return immutable_dict(zip(context, values, strict=True))


_pytree.register_pytree_node(
    immutable_list,
    lambda d: (list(d), None),
    _list_again,
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda d: ([(_pytree.SequenceKey(i), each) for i, each in enumerate(d)], None),
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    _dict_again,
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda d: ([(_pytree.MappingKey(k), each) for k, each in d.items()], list(d)),
)
