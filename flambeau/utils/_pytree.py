"""Nests of containers as a list of leaves and a structure, under the names of `torch.utils._pytree`."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from .._core.process.locks import new_reentrant_lock
from .._core.size import Size

PyTree: TypeAlias = Any
Context: TypeAlias = Any
KeyPath: TypeAlias = tuple[Any, ...]
FlattenFunc: TypeAlias = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Any], Any]
IsLeaf: TypeAlias = Callable[[Any], bool] | None
Function: TypeAlias = Callable[..., Any]

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class SequenceKey(NamedTuple):
    """A place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What an object has at this key."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A place in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What an object has at this key."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The name of an attribute on the way to a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What an object has at this key."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How containers of one type are taken apart and put together."""

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


class _Written(NamedTuple):
    """How the structure of such containers is written as text."""

    name: str
    to_text: Callable[[Any], Any] | None
    from_text: Callable[[Any], Any] | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _Written] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()
BUILTIN_TYPES = {tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque}
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
_LOCK = new_reentrant_lock()


def register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Let a class of one's own be a container whose content counts as part of the nest.

    >>> from flambeau.utils import _pytree as pytree
    >>> pytree.tree_map(lambda x: x + 1, {"a": [1, 2], "b": (3,)})
    {'a': [2, 3], 'b': (4,)}
    """
    if (to_dumpable_context is None) is not (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    with _LOCK:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
        SUPPORTED_SERIALIZED_TYPES[cls] = _Written(name, to_dumpable_context, from_dumpable_context)
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _register_pytree_node(
    cls: Any, flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, *unused: Any, **options: Any
) -> None:
    """The older name of `register_pytree_node`."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: Any) -> None:
    with _LOCK:
        del SUPPORTED_NODES[cls]
        SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls).name, None)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let a dataclass be a container of its fields."""
    declared = [each.name for each in dataclasses.fields(cls) if each.init] if dataclasses.is_dataclass(cls) else None
    if declared is None and field_names is None:
        raise ValueError("field_names must be specified with a list of all fields used to initialize the class")
    dropped = set(drop_field_names or ())
    names = field_names if field_names is not None else [each for each in declared or () if each not in dropped]

    def split(obj: Any) -> tuple[list[Any], list[str], list[str]]:
        given = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in given], given, [name for name in names if name not in given]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        values, given, empty = split(obj)
        return values, [given, empty]

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, given, empty = split(obj)
        return [(GetAttrKey(name), value) for name, value in zip(given, values, strict=True)], [given, empty]

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        given, empty = context
        return cls(**dict(zip(given, values, strict=True)), **dict.fromkeys(empty))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys,
        to_dumpable_context=lambda context: context, from_dumpable_context=lambda context: context,
    )  # fmt: skip


class ConstantNode(NamedTuple):
    """A value that is part of the structure."""

    value: Any


def register_constant(cls: type) -> None:
    """Let values of a class be part of the structure rather than leaves."""
    if getattr(cls, "__eq__", None) is object.__eq__:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__eq__` implementation: {cls}")
    if cls.__hash__ is None:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__hash__` implementation: {cls}")
    register_pytree_node(
        cls, lambda value: ([], ConstantNode(value)), lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )  # fmt: skip
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether values of a class are part of the structure."""
    return cls in CONSTANT_NODES


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple(obj: Any) -> bool:
    """Whether a value is a named tuple, or a class is one of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether a value is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is a sequence with names that C code makes: `os.stat_result`, the results of `torch.max`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and all(type(getattr(cls, name, None)) is int for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))
    )


def is_structseq(obj: Any) -> bool:
    """Whether a value is such a sequence, or a class is one of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Whether a value is such a sequence."""
    return is_structseq_class(type(obj))


def _indexed(values: Iterable[Any]) -> list[tuple[Any, Any]]:
    return [(SequenceKey(number), value) for number, value in enumerate(values)]


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple[Any, ...]:
    return tuple(values)


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d, strict=True)], type(d)


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: Any) -> tuple[list[Any], Context]:
    values, keys = _dict_flatten(d)
    return values, [d.default_factory, keys]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> Any:
    factory, keys = context
    return defaultdict(factory, _dict_unflatten(values, keys))


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    values, keys = _dict_flatten_with_keys(d)
    return values, [d.default_factory, keys]


def _deque_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> Any:
    return deque(values, maxlen=context)


def _defaultdict_to_text(context: Context) -> Any:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_from_text(written: Any) -> Context:
    module = importlib.import_module(written["default_factory_module"])
    return [getattr(module, written["default_factory_name"]), written["dict_context"]]


def _namedtuple_to_text(context: Context) -> str:
    if context not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serialized_type_name"
        )
    return SUPPORTED_SERIALIZED_TYPES[context].name


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name by which structures of it are written."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _Written(serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return _indexed(d), None


_tuple_flatten_with_keys: Callable[[Any], Any] = _list_flatten_with_keys
_ordereddict_flatten, _ordereddict_flatten_with_keys = _dict_flatten, _dict_flatten_with_keys


def _deque_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    return _indexed(d), d.maxlen


def _register_builtins() -> None:
    register = functools.partial(register_pytree_node)
    register(tuple, _tuple_flatten, _tuple_unflatten, serialized_type_name="builtins.tuple",
             flatten_with_keys_fn=_tuple_flatten_with_keys)  # fmt: skip
    register(list, _list_flatten, _list_unflatten, serialized_type_name="builtins.list",
             flatten_with_keys_fn=_list_flatten_with_keys)  # fmt: skip
    register(dict, _dict_flatten, _dict_unflatten, serialized_type_name="builtins.dict",
             flatten_with_keys_fn=_dict_flatten_with_keys)  # fmt: skip
    register(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, serialized_type_name="collections.namedtuple",
             flatten_with_keys_fn=_namedtuple_flatten_with_keys, to_dumpable_context=_namedtuple_to_text,
             from_dumpable_context=SERIALIZED_TYPE_TO_PYTHON_TYPE.__getitem__)  # fmt: skip
    register(OrderedDict, _dict_flatten, _ordereddict_unflatten, serialized_type_name="collections.OrderedDict",
             flatten_with_keys_fn=_dict_flatten_with_keys)  # fmt: skip
    register(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, serialized_type_name="collections.defaultdict",
             flatten_with_keys_fn=_defaultdict_flatten_with_keys, to_dumpable_context=_defaultdict_to_text,
             from_dumpable_context=_defaultdict_from_text)  # fmt: skip
    register(deque, _deque_flatten, _deque_unflatten, serialized_type_name="collections.deque",
             flatten_with_keys_fn=_deque_flatten_with_keys)  # fmt: skip
    register(Size, _tuple_flatten, _tuple_unflatten, serialized_type_name="torch.Size",
             flatten_with_keys_fn=_tuple_flatten_with_keys)  # fmt: skip


_register_builtins()


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a value is no container, or one that `is_leaf` says counts as a whole."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


class TreeSpec:
    """The structure of a nest, without the leaves."""

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type = type
        self.context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        self.num_nodes: int = 1 + sum(each.num_nodes for each in self._children)
        self.num_leaves: int = sum(each.num_leaves for each in self._children) if type is not None else 1

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the items."""
        return self._children

    def children(self) -> list[TreeSpec]:
        """The structures of the items."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The structure of one item."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is no container."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (other.type, other.context, other._children)

    def __hash__(self) -> int:
        context = tuple(self.context) if self.type in (dict, OrderedDict) else None
        return hash((self.type, context, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        prefix = f"TreeSpec({self.type.__name__}, {self.context}, ["
        inner = (",\n" + " " * (indent + 2)).join(each.__repr__(indent + 2) for each in self._children)
        return f"{prefix}{inner}])"

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of a nest that stand where this structure has its leaves."""
        if self.type is None:
            return [tree]
        found = _get_node_type(tree)
        if found is not self.type and not {found, self.type} <= STANDARD_DICT_TYPES:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {found!r}.")
        if found in STANDARD_DICT_TYPES:
            keys = self.context[1] if self.type is defaultdict else self.context
            if len(tree) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(tree)}.")
            if set(tree) != set(keys):
                raise ValueError(f"Node keys mismatch; expected {keys}, but got {list(tree)}.")
            items = [tree[key] for key in keys]
        else:
            items, context = SUPPORTED_NODES[found].flatten_fn(tree)
            if len(items) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(items)}.")
            if context != self.context and self.type is not deque:
                raise ValueError(f"Node context mismatch for node type {self.type!r}.")
        return [part for child, item in zip(self._children, items, strict=True) for part in child.flatten_up_to(item)]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The nest with these leaves."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._built(iter(values))

    def _built(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([each._built(leaves) for each in self._children], self.context)


PyTreeSpec = TreeSpec
_LEAF_SPEC = TreeSpec(None, None, [])


class _LeafSpecMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(metaclass=_LeafSpecMeta):
    """The structure of a leaf."""

    def __new__(cls) -> Any:
        return _LEAF_SPEC


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of these."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dictionary of these."""
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), list(items.values()))


def _flatten_into(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    items, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(each, leaves, is_leaf) for each in items])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nest, and its structure."""
    leaves: list[Any] = []
    structure = _flatten_into(tree, leaves, is_leaf)
    return leaves, structure


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The nest of a structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of a nest, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for each in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(each, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a nest."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return [*tree_iter(args), *tree_iter(kwargs)]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a nest."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Function, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """A nest of what a function makes of the leaves, of several nests if there are several."""
    leaves, structure = tree_flatten(tree, is_leaf)
    others = [structure.flatten_up_to(each) for each in rests]
    return structure.unflatten(map(func, leaves, *others))


def tree_map_(func: Function, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call a function with each leaf, for what it does; gives the nest itself."""
    leaves, structure = tree_flatten(tree, is_leaf)
    for values in zip(leaves, *(structure.flatten_up_to(each) for each in rests), strict=True):
        func(*values)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Function], Function]:
    """Make a function apply to values of some types, or that a predicate accepts, and give others as they are."""
    if isinstance(type_or_types_or_pred, (type, tuple)) or not callable(type_or_types_or_pred):
        kinds = type_or_types_or_pred

        def accepts(value: Any) -> bool:
            return isinstance(value, kinds)
    else:
        accepts = type_or_types_or_pred

    def wrapper(func: Function) -> Function:
        @functools.wraps(func)
        def wrapped(value: Any) -> Any:
            return func(value) if accepts(value) else value

        return wrapped

    return wrapper


def tree_map_only(type_or_types_or_pred: Any, /, func: Function, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` for leaves of some types alone."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Function, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map_` for leaves of some types alone."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a condition holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a condition holds for one of the leaves."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a condition holds for all leaves of some types."""
    return all(pred(each) for each in tree_iter(tree, is_leaf) if isinstance(each, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a condition holds for one of the leaves of some types."""
    return any(pred(each) for each in tree_iter(tree, is_leaf) if isinstance(each, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a nest, each as often as a larger structure has leaves in its place; None if it does not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    items, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(items) != treespec.num_children or context != treespec.context:
        return None
    result: list[Any] = []
    for item, child in zip(items, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(item, child, is_leaf)
        if part is None:
            return None
        result += part
    return result


def _with_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, value in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), value, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a nest, each with the keys that lead to it."""
    return list(_with_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of a nest with the keys that lead to them, and its structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Function, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` with a function that is given the keys that lead to each leaf first."""
    found, structure = tree_flatten_with_path(tree, is_leaf)
    others = [structure.flatten_up_to(each) for each in rests]
    return structure.unflatten(func(path, leaf, *more) for (path, leaf), *more in zip(found, *others, strict=True))


def keystr(kp: KeyPath) -> str:
    """Keys as text: "['a'][0].x"."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What keys lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _structure_as_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if written is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if written.to_text is None:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                "using _register_pytree_node."
            ) from error
    else:
        context = written.to_text(spec.context)
    return {
        "type": written.name, "context": context, "children_spec": [_structure_as_json(each) for each in spec._children]
    }  # fmt: skip


def _structure_from_json(written: Mapping[str, Any]) -> TreeSpec:
    if written["type"] is None:
        return _LEAF_SPEC
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(written["type"])
    if kind is None:
        raise NotImplementedError(f"Deserializing {written['type']} in pytree is not registered.")
    how = SUPPORTED_SERIALIZED_TYPES[kind]
    context = json.loads(written["context"]) if how.from_text is None else how.from_text(written["context"])
    return TreeSpec(kind, context, [_structure_from_json(each) for each in written["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _structure_as_json(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that was written so."""
    protocol, written = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _structure_from_json(written)


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as the nest would be written, with asterisks for the leaves."""
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))
