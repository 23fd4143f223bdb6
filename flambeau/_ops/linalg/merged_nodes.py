"""Nodes that stand for several of PyTorch's: what they do when somebody looks at the graph behind them.

A call that PyTorch records as some views and a product is one op here, with one node. `next_sequence_number` is asked
once for each node that is left out, so that those which a node becomes have the numbers that PyTorch's have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.node import OpNode, SavedTensor, initialise, new_node
from ..._core.tensor import Tensor
from ..._dispatch.gradients.derivative_code import first_apply
from ..shape.view import _reshaped_back, _unsafe_view


def runs_as_one(kind: Kind) -> bool:
    """Whether a call on tensors of a kind may be one op in place of several: nobody watches the ops."""
    return kind in THREAD.modes.direct


def node_before(node: Any, numbers: int, node_class: Any, edge: Any, output: tuple[Any, Any]) -> Any:
    """A node with one input, recorded `numbers` before `node`."""
    made = new_node(node_class)
    initialise(made, (edge,), (output,))
    made.sequence, made.code, made.instruction = node.sequence - numbers, node.code, node.instruction
    return made


def save_instead(saved: Any, made_by: Any, view: Callable[[Any], Any] | None = None) -> None:
    """Let what was saved be a view of it, or itself, that `made_by` has made, or nobody."""
    if type(saved) is SavedTensor and saved.tensor is not None:
        array, kind, counter = saved.tensor if saved.grad_fn is not None else saved.tensor._parts()
        parts = array if view is None else view(array), kind, counter
        saved.tensor = Tensor._from_parts(parts) if made_by is None else parts
        saved.grad_fn, saved.output_nr = made_by, 0


def become_last_view(node: Any) -> None:
    """Make a node that of `_unsafe_view`, with the slots that it had."""
    node.__class__ = _last_view_class(node.__class__)


@cache
def _last_view_class(before: Any) -> type[OpNode]:
    own = {
        "__slots__": before.__slots__, "formulas": ((_reshaped_back, ("self_sym_sizes",)),),
        "saved_names": ("self_sym_sizes",), "op": _unsafe_view, "apply": first_apply,
    }  # fmt: skip
    return type("UnsafeViewBackward0", (OpNode,), own)
