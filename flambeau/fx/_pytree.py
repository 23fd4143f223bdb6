"""Nests of arguments, taken apart as an earlier call was, under the names of `torch.fx._pytree`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..utils._pytree import PyTree, TreeSpec, is_namedtuple_class, tree_flatten

FlattenFuncSpec = Callable[[Any, TreeSpec], list[Any]]
FlattenFuncExactMatchSpec = Callable[[Any, TreeSpec], bool]

SUPPORTED_NODES: dict[Any, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any, flatten_fn_spec: FlattenFuncSpec, flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None
) -> None:
    """Say how a container is taken apart by the structure of another one of its class."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a nest, in the order of a structure that it must have; lists may stand for tuples."""
    if spec.is_leaf():
        return [pytree]
    kind = namedtuple if is_namedtuple_class(spec.type) else spec.type  # all of them are taken apart alike
    if kind in SUPPORTED_NODES:
        children = SUPPORTED_NODES[kind](pytree, spec)
        if len(children) != spec.num_children:
            raise RuntimeError(f"{type(pytree).__name__} of {len(children)}, where the traced program had {spec}")
        return [
            leaf
            for child, inner in zip(children, spec.children(), strict=True)
            for leaf in tree_flatten_spec(child, inner)
        ]
    leaves, found = tree_flatten(pytree)
    if spec != found:
        raise RuntimeError(f"the argument's structure is {found}; the traced program had {spec}")
    return leaves


def _items(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[position] for position in range(spec.num_children)]


def _values(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[key] for key in spec.context]


def _same_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


register_pytree_flatten_spec(dict, _values, _same_length)
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _items, _same_length)
