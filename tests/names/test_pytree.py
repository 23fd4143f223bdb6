"""`utils._pytree`: nests of containers, taken apart and put together as PyTorch does."""

from __future__ import annotations

import collections
import dataclasses
import importlib
from typing import Any

from tests.support.differential import differential, outcome

Point = collections.namedtuple("Point", "x y")


def pytree(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


def nest() -> dict[str, Any]:
    return {
        "b": [1, (2, None)],
        "a": Point(3, {"z": 4}),
        "o": collections.OrderedDict(q=1),
        "d": collections.defaultdict(list, k=5),
        "q": collections.deque([6], maxlen=3),
    }


@differential
def test_flattening_and_back(torch: Any) -> Any:
    tree = pytree(torch)
    leaves, structure = tree.tree_flatten(nest())
    again = tree.tree_unflatten(leaves, structure)
    return (
        leaves,
        repr(structure),
        again == nest(),
        [type(each).__name__ for each in again.values()],
        (structure.num_leaves, structure.num_nodes, structure.num_children, structure.is_leaf()),
        structure == tree.tree_structure(nest()),
        structure == tree.tree_structure([1]),
        tree.treespec_pprint(tree.tree_structure([1, {"a": (2, 3)}])),
        tree.tree_leaves(None),
        tree.tree_leaves([1, [2]], is_leaf=lambda value: value == [2]),
        tree.tree_structure([1, 2]).flatten_up_to([3, [4]]),
    )


@differential
def test_maps(torch: Any) -> Any:
    tree = pytree(torch)
    seen: list[Any] = []
    tree.tree_map_(seen.append, [1, (2,)])
    return (
        tree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}),
        tree.tree_map_only(int, lambda value: value + 1, [1, "a", True]),
        tree.tree_map_only((int, str), lambda value: value * 2, [1, "a"]),
        tree.tree_map_only(lambda value: value == 1, lambda value: 9, [1, 2]),
        tree.tree_map_with_path(lambda path, value: (tree.keystr(path), value), nest()),
        [(tree.keystr(path), value) for path, value in tree.tree_leaves_with_path(nest())],
        tree.tree_all(lambda value: value, [1, 2]),
        tree.tree_any(lambda value: value > 1, [1, 2]),
        tree.tree_all_only(int, lambda value: value > 0, [1, "a"]),
        tree.tree_any_only(str, lambda value: value == "b", [1, "a"]),
        seen,
        tree._broadcast_to_and_flatten([1, 2], tree.tree_structure([[1, 1], 2])),
        tree._broadcast_to_and_flatten([1], tree.tree_structure([[1, 1], 2])),
    )


@differential
def test_structures_as_text(torch: Any) -> Any:
    tree = pytree(torch)
    texts = [
        tree.treespec_dumps(tree.tree_structure(each))
        for each in ([1, (2, {"a": 3})], collections.defaultdict(list, a=1), None, collections.OrderedDict(x=[1]))
    ]
    return texts, [repr(tree.treespec_loads(each)) for each in texts]


@differential
def test_errors(torch: Any) -> Any:
    tree = pytree(torch)
    return (
        outcome(lambda: tree.tree_unflatten([1], tree.tree_structure([1, 2])), "`leaves` has length 1"),
        outcome(lambda: tree.tree_map(lambda a, b: a, [1, 2], [3]), "Node arity mismatch"),
        outcome(lambda: tree.tree_map(lambda a, b: a, [1, 2], (3, 4)), "Node type mismatch"),
        outcome(lambda: tree.tree_map(lambda a, b: a, {"a": 1}, {"b": 2}), "Node keys mismatch"),
        outcome(lambda: tree.treespec_dumps(tree.tree_structure(Point(1, 2))), "namedtuple"),
        outcome(lambda: tree.register_pytree_node(list, None, None), "already registered"),
    )


@differential
def test_classes_of_ones_own(torch: Any) -> Any:
    tree = pytree(torch)

    class Box:
        def __init__(self, content: Any) -> None:
            self.content = content

    @dataclasses.dataclass
    class Pair:
        first: int
        second: int

    class Constant:
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Constant)

        def __hash__(self) -> int:
            return 1

    tree.register_pytree_node(Box, lambda box: ([box.content], None), lambda values, _: Box(*values))
    tree.register_dataclass(Pair)
    tree.register_constant(Constant)
    mapped = tree.tree_map(lambda value: value + 1, [Box(1), Pair(2, 3)])
    return mapped[0].content, (mapped[1].first, mapped[1].second), tree.tree_leaves([Constant(), 1])
