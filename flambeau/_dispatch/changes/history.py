"""How a change in place ends: its version is counted, and history follows a view to its base."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._core.device import contiguous_format
from ..._core.modes import THREAD
from ..._core.node import OWNER, Node, SavedTensor, forward_line, initialise, new_node, save
from ..._core.slots import SLOTS
from ..._core.tensor import CUSTOM_FUNCTION, DEFAULT, INFERENCE, MULTI_OUTPUT, NO_GRAD, Tensor, View
from ..._core.text.errors import GRAPH_FREED, INFERENCE_INPLACE
from ..._core.version import note_change
from ..gradients.recorder import PENDING

if TYPE_CHECKING:
    from ..._core.kind import Kind


def end_change(target: Tensor, node: Any = None, output_nr: int = 0, result: Tensor | None = None) -> None:
    """What every change in place ends with: it is counted, and `node`, if there is one, is the history from now on.

    `result`: the tensor that `target` has become, where that was made apart.
    """
    counter = target._counter
    if counter is not None:
        note_change(counter)
    elif target._extra is not None and target._extra.own_version is not None:
        target._extra.own_version += 1
    elif not THREAD.modes.inference:
        raise RuntimeError(INFERENCE_INPLACE)
    if node is not None:
        if result is not None:
            _share_saved_result(target, result)
        elif hasattr(type(node), "result") and node.result is PENDING:  # most node types have no such slot
            node.result = save(target, node)
        rebase_history(target, node, output_nr)


def _share_saved_result(target: Tensor, result: Tensor) -> None:
    """Where the derivative reads the result, that is now the content of `target`: later changes of it must be
    noticed.
    """
    node = result._grad_fn
    counter = target._counter
    if counter is None or result._kind is not target._kind.plain:
        return
    for name in getattr(node, "saved_names", ()):
        saved = getattr(node, name)
        if type(saved) is SavedTensor and saved.grad_fn is OWNER and saved.counter is result._counter:
            saved.tensor = saved.tensor and target._parts()  # unless a hook packed it
            saved.counter = counter
            saved.version = counter[0]


def rebase_history(target: Tensor, node: Node, output_nr: int) -> None:
    """After an in-place change: `target` is now what `node` made. A view passes this on to its base."""
    view = target._view
    if view is None:
        _move_retained(target, node, output_nr)
        target._requires_grad = True
        target._grad_fn = node
        target._output_nr = output_nr
        return
    base = view.base
    slices = new_node(CopySlices)
    initialise(slices, (base._edge(), *node.edges[1:]), ((base._array.shape, base._kind),))
    slices.code, slices.instruction = node.code, node.instruction
    slices.geometry = _geometry(base)
    slices.window = _geometry(target)
    slices.kind = target._kind
    slices.inner = node
    slices.changed = weakref.ref(target)
    _let_results_follow(slices, node)
    _move_retained(base, slices, 0)
    base._requires_grad = True
    base._grad_fn = slices
    base._output_nr = 0
    view.version = -1  # the next look at grad_fn finds the new history
    if target._extra is not None and target._extra.retains_grad:
        _ = target.grad_fn  # looks now: the node that the view had may be part of what was put into it


def _let_results_follow(slices: CopySlices, node: Node) -> None:
    """What `node` saved of its result is the window that `slices` made of the base: its history leads there."""
    for name in getattr(node, "saved_names", ()):
        saved = getattr(node, name)
        if type(saved) is SavedTensor and saved.grad_fn is OWNER:
            saved.grad_fn = DeferredOwner(slices)


def leave_graph(target: Tensor) -> None:
    """Make a leaf of a tensor that is no view. The view of it that was changed last keeps the history of the change."""
    made_by = target._grad_fn
    if type(made_by) is CopySlices:
        changed = made_by.changed()
        if changed is not None:
            _ = changed.grad_fn
    target._requires_grad = False
    target._grad_fn = None
    target._output_nr = 0
    if target._extra is not None:
        target._extra.tangents = None


class DeferredOwner:
    """Makes, when a derivative asks, the node of a saved result that is a window of a changed base.

    It holds the change weakly: the change holds the node that saved the result.
    """

    __slots__ = ("slices",)

    def __init__(self, slices: CopySlices) -> None:
        self.slices = weakref.ref(slices)

    def node(self) -> Node | None:
        as_strided = SLOTS.as_strided()
        slices = self.slices()
        if slices is None or slices.inner is None or slices.kind is not slices.outputs[0][1]:
            return None
        node = new_node(as_strided.node_class)
        initialise(node, ((slices, 0),), (slices.inner.outputs[0],))
        node.self_sym_sizes, node.self_sym_strides, node.self_offset = slices.geometry
        node.size, node.stride, node.storage_offset = slices.window
        made: Node = node
        return made


def _move_retained(target: Tensor, node: Node, output_nr: int) -> None:
    """`retain_grad` is about the tensor as it is now: its new node keeps the gradient, the old one no longer."""
    if target._extra is None or not target._extra.retains_grad:
        return
    old = target._grad_fn
    if old is not None and old._hooks is not None:
        old._hooks.retain.pop(target._output_nr, None)
    node.all_hooks.retain[output_nr] = weakref.ref(target)


Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def _geometry(tensor: Tensor) -> Geometry:
    return tuple(tensor._array.shape), tensor.stride(), tensor.storage_offset()


class CopySlices(Node):
    """An in-place change of a view, as its base sees it: one window of the base was replaced by the result of
    `inner`.
    """

    __slots__ = ("changed", "geometry", "inner", "kind", "window")
    prefix = "torch::autograd::"
    changed: weakref.ref[Tensor]
    """The view that was changed: it finds its new history when somebody looks."""
    geometry: Geometry
    window: Geometry
    kind: Kind
    inner: Node | None

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        grad = grads[0]
        if grad is None:
            return [None] * len(self.edges)
        if self.inner is None:
            raise RuntimeError(GRAPH_FREED + forward_line(self))
        shape, strides, offset = self.geometry
        result: Any = SLOTS.as_kind(grad.new_empty_strided(shape, strides), self.outputs[0][1])
        result.copy_(grad)
        window_shape, window_strides, window_offset = self.window
        start = window_offset - offset * self.outputs[0][1].dtype.itemsize // self.kind.dtype.itemsize
        window: Any = SLOTS.window_of(result, self.kind, (window_shape, window_strides, start))
        inner = self.inner.apply([window.clone(memory_format=contiguous_format)])
        if self.edges[0] is None:
            return [None, *inner[1:]]
        if inner[0] is None:
            if window.numel() == result.numel():  # none of the gradient that arrived goes on
                return [None, *inner[1:]]
            window.zero_()
        else:
            window.copy_(inner[0])
        return [result, *inner[1:]]

    def release(self) -> None:
        if self.inner is not None:
            self.inner.release()
        self.inner = None


def regenerate_view_history(tensor: Tensor, view: View) -> None:
    """Connect a view to the present history of its base, which was changed in place."""
    if view.creation != DEFAULT:
        raise RuntimeError(
            forbidden_view(tensor, view, "its base or another view of its base has been modified inplace")
        )
    base = view.base
    modes = THREAD.modes
    grad, modes.grad = modes.grad, True
    try:
        source = Tensor._from_parts((base._array, base._kind, base._counter))
        source._requires_grad = True
        source._grad_fn = base.grad_fn
        source._output_nr = base._output_nr
        made_by = tensor._grad_fn
        signs_last = made_by is not None and made_by.name() in ("ConjBackward0", "NegViewBackward0")
        again = SLOTS.window_of(source, tensor._kind, _geometry(tensor), signs_last)
    finally:
        modes.grad = grad
    assert again._grad_fn is not None
    if source._grad_fn is None:
        _lead_back(again._grad_fn, source, base)
    _move_retained(tensor, again._grad_fn, 0)
    tensor._requires_grad = True
    tensor._grad_fn = again._grad_fn
    tensor._output_nr = 0
    assert tensor._counter is not None
    view.version = tensor._counter[0]


def _lead_back(node: Any, source: Tensor, leaf: Tensor) -> None:
    """Let the gradient that `node` sends to `source`, a stand-in for `leaf`, go to `leaf` itself."""
    while node.edges[0][0] is not source:
        node = node.edges[0][0]
    node.edges = (leaf._edge(),)


_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. Do both inside the {} block, or both "
    "outside."
)

_WHY_FORBIDDEN = {
    NO_GRAD: _AMBIGUOUS.format("no_grad"),
    INFERENCE: _AMBIGUOUS.format("inference_mode"),
    MULTI_OUTPUT: (
        "This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
    CUSTOM_FUNCTION: (
        "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
        "logic to handle view+inplace would override the custom backward associated with the custom Function, leading "
        "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
        "Function."
    ),
}


def forbidden_view(target: Tensor, view: View, deed: str = "is being modified inplace") -> str:
    """Why a view that was made in this way cannot be changed in place, or follow its base."""
    made_by = target._grad_fn
    if made_by is not None:
        name = made_by.name().removesuffix("0").removesuffix("Backward")
        what = f"Output {target._output_nr} of {name} is a view and {deed}"
    elif view.creation == INFERENCE:
        what = f"A view was created in inference mode and {deed} in normal mode"
    else:
        what = f"A view was created in no_grad mode and {deed} with grad mode enabled"
    return f"{what}. {_WHY_FORBIDDEN[view.creation]}"
