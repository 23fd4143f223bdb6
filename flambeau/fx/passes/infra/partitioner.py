"""The nodes that something supports, in as few groups as dependencies allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...graph_module import GraphModule
from ...node import Node
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Some nodes that become one module."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = {}
        orders = None if node_orders is None else list(node_orders)
        for at, node in enumerate(nodes or ()):
            self.add_node(node, None if orders is None else orders[at])

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node to the part."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Take a node out of the part."""
        del self.nodes[node]

    def size(self) -> int:
        """How many there are."""
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(self.nodes)


class CapabilityBasedPartitioner:
    """Finds groups of nodes that are supported, such that each group can run as one."""

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None, skip_horizontal_fusion: bool = False,
    ) -> None:  # fmt: skip
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.skip_horizontal_fusion = skip_horizontal_fusion  # groups grow along users alone, so there is none
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())

    def _is_supported(self, node: Node) -> bool:
        modules = dict(self.graph_module.named_modules())
        return self.operator_support.is_node_supported(modules, node)

    def propose_partitions(self) -> list[Partition]:
        """The groups. A node joins that of a user where no way leads out of the group and back."""
        nodes = list(self.graph_module.graph.nodes)
        after: dict[Node, set[Node]] = {}
        for node in reversed(nodes):
            after[node] = {each for user in node.users for each in (user, *after[user])}
        groups: list[list[Node]] = []
        of: dict[Node, list[Node]] = {}
        for node in reversed(nodes):
            if node.op in ("placeholder", "output") or not self._is_supported(node):
                continue
            own = of[node] = [node]
            groups.append(own)
            candidates = list(dict.fromkeys(id(of[user]) for user in node.users if user in of))
            for each in [group for group in groups if id(group) in candidates]:
                if each is not own and self._joined_is_free([*own, *each], after):
                    own += each
                    groups.remove(each)
                    for member in each:
                        of[member] = own
        order = {node: at for at, node in enumerate(nodes)}
        kept = [sorted(group, key=order.__getitem__) for group in groups if self._is_worth(group)]
        kept.sort(key=lambda group: order[group[0]], reverse=True)
        return [Partition(number, group, [order[node] for node in group]) for number, group in enumerate(kept)]

    @staticmethod
    def _joined_is_free(group: list[Node], after: dict[Node, set[Node]]) -> bool:
        own = set(group)
        outside = {user for node in group for user in node.users if user not in own}
        return not any(after[user] & own for user in outside)

    def _is_worth(self, group: list[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        counted = [node for node in group if _target(node) not in self.non_compute_ops]
        return len(counted) > 1 or any(_target(node) in self.allowed_single_node_partition_ops for node in counted)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Each group as a module of its own."""
        return fuse_by_partitions(self.graph_module, [list(each.nodes) for each in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Leave out nodes that compute nothing at the beginning and the end of groups."""
        for partition in partitions:
            changed = True
            while changed:
                changed = False
                for node in list(partition.nodes):
                    alone = not any(each in partition.nodes for each in node.all_input_nodes) or not any(
                        each in partition.nodes for each in node.users
                    )
                    if alone and _target(node) in self.non_compute_ops:
                        partition.remove_node(node)
                        changed = True

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the groups, and make modules of them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _target(node: Node) -> str:
    target: Any = node.target
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"
