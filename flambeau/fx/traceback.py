"""What new nodes inherit from the one that is running, under the names of `torch.fx.traceback`."""

from __future__ import annotations

import contextlib
import copy
import functools
import traceback as _traceback
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .graph import Graph
    from .node import Node
else:  # what annotations mean at run time, when those modules are not there yet
    Graph = Node = Any

__all__ = [
    "NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
    "get_graph_provenance_json", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta",
    "set_stack_trace",
]  # fmt: skip

_INHERITED = (
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id",
    "has_backward_hook", "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag",
)  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])

current_meta: dict[str, Any] = {}
should_preserve_node_meta = False


class NodeSourceAction(Enum):
    """What a pass did to a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Where a node comes from: the node before it, and the pass that made this one of it."""

    def __init__(
        self, node: Node | None, pass_name: str = "", action: NodeSourceAction | list[NodeSourceAction] | None = None
    ) -> None:
        self.pass_name = pass_name
        self.action = [action] if isinstance(action, NodeSourceAction) else list(action or [])
        self.node_info = None if node is None else (node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = copy.deepcopy(node.meta.get("from_node", [])) if node is not None else []

    @property
    def name(self) -> str:
        """The name of the node before."""
        return self.node_info[0] if self.node_info else ""

    @property
    def target(self) -> str:
        """The target of the node before."""
        return self.node_info[1] if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """Which graph it was of."""
        return self.node_info[2] if self.node_info else -1

    def _actions(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def __repr__(self) -> str:
        return self.print_readable()

    def print_readable(self, indent: int = 0) -> str:
        """The whole descent, one line each."""
        if indent > 9:
            return ""
        text = " " * indent * 4 + (
            f"(name={self.name}, pass_name={self.pass_name}, action={self._actions()}, graph_id={self.graph_id})\n"
        )
        return text + "".join(each.print_readable(indent + 1) for each in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """The whole descent as plain data."""
        return {
            "name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name,
            "action": self._actions(), "from_node": [each.to_dict() for each in self.from_node],
        }  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.print_readable())


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A context in which new nodes inherit what is known of the one that is running."""
    global should_preserve_node_meta
    before, meta = should_preserve_node_meta, dict(current_meta)
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta = before
        _become(meta)


def _become(meta: dict[str, Any]) -> None:
    current_meta.clear()
    current_meta.update(meta)


def has_preserved_node_meta() -> bool:
    """Whether new nodes inherit."""
    return should_preserve_node_meta


def get_current_meta() -> dict[str, Any]:
    """What is known of the node that is running."""
    return current_meta


def give_current_meta(node: Node) -> None:
    """Let a new node inherit."""
    if current_meta.get("stack_trace"):
        node.stack_trace = current_meta["stack_trace"]
    node.meta.update({key: copy.copy(current_meta[key]) for key in _INHERITED if key in current_meta})


def set_stack_trace(stack: list[str]) -> None:
    """Say which lines of the program are running, if new nodes inherit that."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The lines of the program that are running."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return _traceback.format_list(_traceback.extract_stack()[:-1])


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A context whose nodes get entries in `node.meta["custom"]`, where nodes inherit."""
    had, before = "custom" in current_meta, copy.copy(current_meta.get("custom", {}))
    try:
        current_meta["custom"] = {**before, **annotation_dict}
        yield
    finally:
        if had:
            current_meta["custom"] = before
        else:
            del current_meta["custom"]


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Function], Function]:
    """A decorator: all that a function does is annotated."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """A context in which `node` is the one that is running."""
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = dict(current_meta)
    try:
        meta = dict(node.meta)
        if meta.get("nn_module_stack") is not None:
            meta["nn_module_stack"] = copy.copy(meta["nn_module_stack"])
        meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        _become(meta)
        yield
    finally:
        _become(before)


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """Where the nodes that call functions come from, by their names."""
    return {
        node.name: [each.to_dict() for each in node.meta.get("from_node", [])]
        for node in graph.nodes
        if node.op == "call_function"
    }


class _Replay:
    node: Node | None = None


def get_current_replay_node() -> Node | None:
    """The node that is being run again, if one is."""
    return _Replay.node


@contextlib.contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """A context in which a node is being run again."""
    before, _Replay.node = _Replay.node, node
    try:
        yield
    finally:
        _Replay.node = before


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Say that a backward pass is at the node of a graph with this number: what is traced now carries it."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Say that it has left that node."""
    if not should_preserve_node_meta:
        return
    depth = current_meta.get("in_grad_fn", 0)
    if depth == 1:
        del current_meta["in_grad_fn"], current_meta["grad_fn_seq_nr"]
    elif depth > 1:
        current_meta["in_grad_fn"] = depth - 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]
