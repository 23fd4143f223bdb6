"""Which nodes a backend takes, under the names of `torch.fx.passes.operator_support`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from ...nn.modules.module import Module
from ..node import Node
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support",
]  # fmt: skip

IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Says of each node whether it is taken."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether a node is taken; `submodules` are those of its module, by name."""


class OperatorSupport(OperatorSupportBase):
    """Takes the targets of a table: for each None, or the dtypes of its arguments by position and by name."""

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the table has the node's target, with the dtypes of its arguments."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_position, by_name = wanted
        given = [*zip(node.args, by_position, strict=False), *((node.kwargs.get(k), v) for k, v in by_name.items())]
        return all(not isinstance(arg, Node) or _get_arg_dtype(arg) in dtypes for arg, dtypes in given if dtypes)


def _get_arg_dtype(arg: Node) -> Any:
    """The dtype that a pass over shapes has noted."""
    meta: Any = arg.meta.get("tensor_meta")
    return meta.dtype if hasattr(meta, "dtype") else arg.meta["type"]


class _Asking(OperatorSupportBase):
    def __init__(self, is_node_supported: IsNodeSupported) -> None:
        self._ask = is_node_supported

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        return self._ask(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """What a function says."""
    return _Asking(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of several take."""
    return create_op_support(lambda submods, node: all(each.is_node_supported(submods, node) for each in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of several takes."""
    return create_op_support(lambda submods, node: any(each.is_node_supported(submods, node) for each in op_support))


class OpSupports:
    """Reasons to decline that are often needed."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Decline nodes with an argument of the dtype."""
        return create_op_support(
            lambda submods, node: all(_get_arg_dtype(each) is not dtype for each in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Decline nodes of some names."""
        return create_op_support(lambda submods, node: node.name not in disallow_set)
