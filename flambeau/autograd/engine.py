"""The one traversal: from the outputs back to the leaves, each node once, newest first.

`run_backward` counts how many gradients each node will receive, then keeps a heap of the nodes that have received them
all, ordered by the time of their creation. It runs in the calling thread, so a debugger steps from `loss.backward()`
into every formula, and it can be called again from inside a formula or a hook.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush, heappushpop
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.backend import ARRAY_CLASSES
from .._core.device import contiguous_format, strided
from .._core.geometry.layout import is_dense
from .._core.modes import THREAD, recording
from .._core.node import Node, OpNode
from .._core.process.locks import new_reentrant_lock
from .._core.process.tracebacks import leave_out_library
from .._core.slots import SLOTS
from .._core.tensor import Tensor, View
from .._dispatch.arguments.broadcast import expandable, sum_to_shape
from .._dispatch.axes import ELEMENTS_OF_FIRST
from .._dispatch.call.cast import cast
from .._dispatch.dispatch import Array, primitive
from .._dispatch.writer import writer
from ._hook_calls import run_hooks_on, run_post_hooks, run_pre_hooks
from .anomaly_mode import run_watched

if TYPE_CHECKING:
    from ._late_casts import LateCasts

Target = Any
"""Where an edge leads: a node, or a leaf tensor."""

Uses = dict[tuple[Target, int], list[Tensor]]
"""The gradients of tensors that were used more than once, by their edges."""

_DONE_WITH: list[Any] = []

_MANY = 2**16
"""Sums of so many elements are not worth new memory each."""
_DEEPEST = 30
"""How many passes run inside one another on the stack of one thread."""

_accumulation = new_reentrant_lock()  # backward passes of several threads may share leaves


def run_backward(
    roots: Sequence[tuple[Target, int, Tensor]],
    inputs: Sequence[tuple[Target, int]] | None,
    keep_graph: bool,
    create_graph: bool,
    accumulate_grad: bool,
    uses: Uses | None = None,
) -> list[Tensor | None]:
    """Propagate the gradients of `roots`. With `inputs`, run only what leads to them and return their gradients.

    `uses` gets the gradients that were added up at one place, in order; whoever asks wants the graph in front of
    `inputs` alone: none of them runs because another one lies behind it.
    """
    modes = THREAD.modes
    outer = modes.grad, modes.backward_pass, modes.functions
    try:  # whatever comes next, an interrupt of the user's too, modes are put back
        modes.grad = create_graph
        if create_graph:
            spell_out(roots)
        if modes.functions:  # they see what the program calls, not what its derivatives are made of
            modes.functions = ()
            modes.refresh()
        modes.backward_pass = own = _Pass(roots, inputs, keep_graph, accumulate_grad, uses)
        join = SLOTS.join_streams
        leave = None if join is None else join([each.sequence for each in own.expected if isinstance(each, Node)])
        if own.depth % _DEEPEST or not own.depth:
            results = own.run()
        else:
            from .._core.process.another_stack import on_another_stack

            results = on_another_stack(own.run)
        for callback in own.callbacks:
            callback()
        if leave is not None:
            leave()
        return results
    except MemoryError as error:
        raise SLOTS.out_of_memory(error) from None
    except Exception as error:
        leave_out_library(error)
        raise
    finally:
        unfinished = modes.backward_pass
        modes.grad, modes.backward_pass, modes.functions = outer
        late = None if unfinished is None or unfinished is outer[1] else unfinished.late
        if late is not None and late.waiting:
            late.finish(unfinished.reach_leaves)  # gradients that were there before an error
        if modes.functions:
            modes.refresh()


def queue_callback(callback: Callable[[], None]) -> None:
    """Call a function at the end of the backward pass that is running: hooks ask for it."""
    own = THREAD.modes.backward_pass
    if own is None:
        raise RuntimeError(
            "Final callbacks can only be installed during backward pass: from a hook, or from a backward function"
        )
    own.callbacks.append(callback)


class _Pass:
    """One backward pass: gradients waiting at their targets, and how many are still to come."""

    __slots__ = (
        "__weakref__",
        "accumulate_grad",
        "callbacks",
        "captured",
        "depth",
        "expected",
        "inputs",
        "keep_graph",
        "late",
        "needed",
        "ready",
        "records",
        "roots",
        "summed",
        "uses",
        "waiting",
        "waits",
        "watched",
    )  # fmt: skip

    def __init__(
        self,
        roots: Sequence[tuple[Target, int, Tensor]],
        inputs: Sequence[tuple[Target, int]] | None,
        keep_graph: bool,
        accumulate_grad: bool,
        uses: Uses | None,
    ) -> None:
        outer = THREAD.modes.backward_pass
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.roots = roots
        self.uses = uses
        self.keep_graph = keep_graph
        self.accumulate_grad = accumulate_grad
        self.callbacks: list[Callable[[], None]] = []
        """What is to be done when it is over."""
        self.waiting: dict[Target, list[Tensor | None]] = {}
        self.ready: list[Any] = []
        """A heap of the nodes whose gradients are all there: the number that orders them, the node, the gradients."""
        ends = None if uses is None or inputs is None else {target for target, _ in inputs}
        self.expected = count_gradients(roots) if ends is None else _counted_up_to(ends, roots)
        self.captured: dict[Target, dict[int, Tensor | None]] | None = None
        self.needed: set[Target] | None = None
        if inputs is not None:
            self.captured = {}
            for target, number in inputs:
                self.captured.setdefault(target, {})[number] = None
            self.needed = leading_to(self.captured.keys(), self.expected)
        self.inputs = inputs
        modes = THREAD.modes
        self.watched = modes.anomaly
        self.records = modes.grad or not modes.is_ordinary
        self.late: LateCasts | None = None
        self.waits = accumulate_grad and inputs is None and not self.records
        """Whether gradients may be cast together: `late`, once there is one."""
        self.summed: set[tuple[Target, int]] = set()
        """Where a sum waits that this pass has made: nobody else has it yet."""

    def run(self) -> list[Tensor | None]:
        ready, needed, captured, expected = self.ready, self.needed, self.captured, self.expected
        keep_graph, late = self.keep_graph, self.late
        rare = captured is not None or self.watched
        for target, number, gradient in self.roots:
            if needed is None or target in needed:
                self.deliver(target, number, checked(gradient, target, number, "the gradient that was passed in"))
        newest: Any = None  # an entry of the heap that is not in it: most nodes make one other ready, the next to run
        while ready or newest is not None:
            if newest is None:
                _, node, grads = heappop(ready)
            else:
                _, node, grads = heappushpop(ready, newest) if ready else newest
                newest = None
            edges = node.edges
            hooks = node._hooks
            if late is not None and late.waiting and (hooks is not None or not isinstance(node, OpNode)):
                late.finish(self.reach_leaves)  # the user's own functions may look at gradients
            if rare or hooks is not None:
                grads, results = self.run_watched(node, grads)
                if results is None:
                    continue
            else:
                results = node.apply(grads)
                if len(results) != len(edges):
                    results = fit_to_edges(node, results)
            if not keep_graph and node.holds:
                node.release()
            given = id(grads[0])
            grads = _DONE_WITH  # what a leaf is given can be its own only if the gradient that it is a view of is gone
            for edge, result in zip(edges, results):  # noqa: B905  (their lengths were compared above)
                if edge is None:
                    continue
                target, number = edge
                if needed is not None and target not in needed:
                    continue
                if result is None:
                    self.deliver(target, number, None, absent=node.may_be_absent)
                    continue
                if isinstance(target, Node):
                    outputs = target.outputs
                    shape, kind = outputs[number]
                    if type(result) is not Tensor or result._kind is not kind or result._array.shape != shape:
                        result = checked(result, target, number, node)
                    if expected[target] == 1 and len(outputs) == 1:  # the only one that it ever gets
                        if target.only_casts and self.waits and kind.backend.costs_per_call and target._hooks is None:
                            behind = target.edges[0]
                            leaf = None if behind is None or isinstance(behind[0], Node) else behind[0]
                            if leaf is not None and self.waits_for(leaf, result):
                                late = self.late
                                continue
                        if newest is not None:
                            heappush(ready, newest)
                        newest = -target.sequence, target, [result]
                        continue
                    fresh = False
                else:
                    unseen = node.makes_gradients and (hooks is None or not hooks.post)
                    fresh = unseen and id(result) != given
                    if (
                        type(result) is not Tensor
                        or result._kind is not target._kind
                        or result._array.shape != target._array.shape
                    ):
                        if self.waits and target._kind.backend.costs_per_call and self.waits_for(target, result):
                            late = self.late
                            continue
                        returned, result = result, checked(result, target, number, node)
                        fresh = fresh or (unseen and result is not returned)
                    if expected[target] == 1:
                        self.reach_leaf(target, result, fresh)
                        continue
                self.deliver(target, number, result, fresh)
        if late is not None and late.waiting:
            late.finish(self.reach_leaves)
        if captured is None or self.inputs is None:
            return []
        return [captured[target][number] for target, number in self.inputs]

    def waits_for(self, leaf: Tensor, gradient: Tensor) -> bool:
        """Whether the gradient of a leaf, which has another dtype, waits from now on to be cast with others."""
        if type(gradient) is not Tensor or self.expected[leaf] != 1 or leaf._extra is not None:
            return False
        if self.late is None:
            from ._late_casts import LateCasts

            self.late = LateCasts()
        return self.late.takes(leaf, gradient, self.reach_leaves)

    def run_watched(self, node: Node, grads: list[Tensor | None]) -> tuple[list[Tensor | None], Any]:
        """The gradients that a node was given in the end, and what it hands on, where hooks or the caller look on.

        None: the caller has what it wanted, and the node does not run.
        """
        hooks, needed, captured = node._hooks, self.needed, self.captured
        wanted = None if captured is None else captured.get(node)
        ends = wanted is not None and not self.accumulate_grad and (self.uses is not None or not self._leads_on(node))
        given = grads if ends or wanted is None else list(grads)
        if hooks is not None:
            grads = run_tensor_hooks(node, grads)
        if wanted is not None:  # as in PyTorch: a node that runs as well is asked before its tensors' hooks
            for number in wanted:
                wanted[number] = (grads if ends else given)[number]
            if ends:
                return grads, None
        if hooks is not None:
            grads = run_pre_hooks(node, grads)
        edges = node.edges
        if self.watched:
            results = run_watched(node, grads)
        elif needed is not None and hooks is None and isinstance(node, OpNode):
            kept = [edge if edge is not None and edge[0] in needed else None for edge in edges]
            if None in kept:
                node.check_saved(kept)
            results = node.apply(grads, kept)
        else:
            results = node.apply(grads)
        if len(results) != len(edges):
            results = fit_to_edges(node, results)
        if needed is not None and not isinstance(node, OpNode):
            for edge, each in zip(edges, results, strict=True):
                if edge is not None and each is not None and edge[0] not in needed:
                    checked(each, *edge, node)  # nobody waits for it, but it is what the user's `backward` returned
        if hooks is not None and hooks.post:
            fitting = [
                each if each is None or edge is None else checked(each, *edge, node)
                for each, edge in zip(results, edges, strict=True)
            ]
            results = run_post_hooks(node, fitting, grads)
        return grads, results

    def _leads_on(self, node: Node) -> bool:
        """Whether a captured node must also run, because another input lies behind it."""
        assert self.needed is not None
        return any(edge is not None and edge[0] in self.needed for edge in node.edges)

    def will_reach(self, target: Target) -> bool:
        """Whether a gradient of `target` is computed in this pass."""
        return target in self.expected and (self.needed is None or target in self.needed)

    def deliver(
        self, target: Target, number: int, gradient: Tensor | None, fresh: bool = False, absent: bool = False
    ) -> None:
        """Add a gradient to those that wait at `target`; when it was the last, the target is ready.

        `fresh`: the gradient was made in this pass, and nobody outside has seen it. `absent`: there is none because the
        roots do not depend on the target; a leaf that gets no other has no part in this pass, and its hooks have none.
        """
        is_node = isinstance(target, Node)
        awaited = self.expected[target]
        remaining = (awaited if awaited > 0 else -awaited) - 1
        self.expected[target] = -remaining  # a target that waits is told from one that gets a single gradient
        grads = self.waiting.get(target)
        if grads is None:
            grads = [None] * len(target.outputs) if is_node else [None]
            if remaining:
                self.waiting[target] = grads
        elif not remaining:
            del self.waiting[target]
        if gradient is not None:
            present = grads[number]
            if present is None:
                grads[number] = gradient
            else:
                grads[number] = self.sum_of(target, number, present, gradient)
                fresh = True
        if remaining:
            return
        if is_node:
            heappush(self.ready, (-target.sequence, target, grads))
        elif not absent or grads[0] is not None:
            self.reach_leaf(target, grads[0], fresh)

    def sum_of(self, target: Target, number: int, present: Tensor, gradient: Tensor) -> Tensor:
        """Two gradients of one tensor added; what is itself such a sum takes the new one in place."""
        if self.uses is not None:
            self.uses.setdefault((target, number), [present]).append(gradient)
        is_sum = (target, number) in self.summed
        if self.records or present._kind is not gradient._kind or not present._kind.is_cpu or present._kind.indirect:
            return present + gradient
        self.summed.add((target, number))
        return present.add_(gradient) if is_sum and present._array.size >= _MANY else present + gradient

    def reach_leaves(self, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Give leaves their gradients, which this pass has made for each of them alone."""
        others = []
        with _accumulation:
            for leaf, gradient in zip(leaves, gradients, strict=True):
                if leaf._grad is None and leaf._extra is None and gradient._array.strides == leaf._array.strides:
                    leaf._grad = gradient
                else:
                    others.append((leaf, gradient))
        for leaf, gradient in others:
            self.reach_leaf(leaf, gradient, True)

    def reach_leaf(self, leaf: Tensor, gradient: Tensor | None, fresh: bool) -> None:
        """All gradients of a leaf are there: run its hooks and add the sum to `.grad`, or hand it to the caller."""
        extra = leaf._extra
        accumulator = None
        if self.uses is not None:  # whoever asks wants what comes before hooks, in the order in which they run
            self.uses[leaf, 0] = self.uses.pop((leaf, 0), [])
            extra = None
        if extra is not None and self.late is not None and self.late.waiting:
            self.late.finish(self.reach_leaves)
        if extra is not None or self.captured is not None:
            accumulator = extra.accumulator() if extra is not None and extra.accumulator is not None else None
            if extra is not None and THREAD.modes.interpreters and has_leaf_hooks(leaf):
                THREAD.modes.interpreters[-1].misses("a hook of a leaf runs in a backward pass")
            if extra is not None and extra.hooks:
                gradient = run_hooks_on(gradient, extra.hooks)
                fresh = False
            if self.captured is not None and leaf in self.captured:
                self.captured[leaf][0] = gradient
        if not self.accumulate_grad:
            return
        if accumulator is not None and accumulator._hooks is not None:
            gradient = run_pre_hooks(accumulator, [gradient])[0]
            fresh = False
        is_frozen = not (
            leaf._requires_grad or leaf.requires_grad
        )  # since the forward pass; its hooks run all the same
        if gradient is not None and not is_frozen:
            if leaf._grad_fn is not None:
                raise RuntimeError(
                    "leaf variable has been moved into the graph interior: it was used as a leaf, and then changed in "
                    "place by an operation that autograd recorded. Work on a .clone() of it"
                )
            if extra is not None and extra.former_shapes is not None:
                gradient = _in_present_shape(gradient, leaf)
            with _accumulation:
                if leaf._grad is None and not self.records:
                    leaf._grad = owned(gradient, leaf, fresh)
                else:
                    accumulate(leaf, gradient, fresh)
        if extra is not None and extra.post_accumulate:
            for hook in list(extra.post_accumulate.values()):
                hook(leaf)
        if accumulator is not None and accumulator._hooks is not None and accumulator._hooks.post:
            run_post_hooks(accumulator, (), [gradient])


def has_leaf_hooks(leaf: Tensor) -> bool:
    """Whether something runs when the gradient of a leaf is there."""
    extra = leaf._extra
    if extra is None:
        return False
    accumulator = None if extra.accumulator is None else extra.accumulator()
    return bool(extra.hooks or extra.post_accumulate or (accumulator is not None and accumulator._hooks is not None))


def count_gradients(roots: Sequence[tuple[Target, int, Tensor]]) -> dict[Target, int]:
    """For every node and leaf in the graph behind the roots: how many gradients it will get, those of the roots
    included.
    """
    counts: dict[Target, int] = {}
    nodes: list[Any] = []
    for target, _, _ in roots:
        if target in counts:
            counts[target] += 1
        else:
            counts[target] = 1
            if isinstance(target, Node):
                nodes.append(target)
    for node in nodes:  # it grows meanwhile
        for edge in node.edges:
            if edge is not None:
                target = edge[0]
                if target in counts:
                    counts[target] += 1
                else:
                    counts[target] = 1
                    if isinstance(target, Node):
                        nodes.append(target)
    return counts


def _counted_up_to(ends: Iterable[Target], roots: Sequence[tuple[Target, int, Tensor]]) -> dict[Target, int]:
    """`count_gradients` of a graph that ends where some gradients go: what lies behind these is somebody else's."""
    counts = Counter([target for target, _, _ in roots])
    met = {*ends, *counts}
    nodes = [target for target in counts if isinstance(target, Node) and target not in {*ends}]
    for node in nodes:  # it grows meanwhile
        reached = [edge[0] for edge in node.edges if edge is not None]
        counts.update(reached)
        nodes += [each for each in dict.fromkeys(reached) if isinstance(each, Node) and each not in met]
        met.update(reached)
    return counts


def spell_out(roots: Sequence[tuple[Target, int, Tensor]]) -> None:
    """Let nodes that stand for several be those which PyTorch has: derivatives of derivatives go through each of them,
    and gradients are added where they meet.
    """
    waiting: list[Any] = [target for target, _, _ in roots]
    seen: set[int] = set()
    while waiting:
        target = waiting.pop()
        if isinstance(target, Node) and id(target) not in seen:
            seen.add(id(target))
            target.spell_out()
            waiting += [edge[0] for edge in target.edges if edge is not None]


def leading_to(inputs: Any, graph: Iterable[Target]) -> set[Target]:
    """The targets of `graph` from which one of `inputs` can be reached, the inputs included."""
    sources: dict[Target, list[Target]] = {}
    for target in graph:
        if isinstance(target, Node):
            for edge in target.edges:
                if edge is not None:
                    sources.setdefault(edge[0], []).append(target)
    needed = set(inputs)
    stack = list(needed)
    while stack:
        for source in sources.get(stack.pop(), ()):
            if source not in needed:
                needed.add(source)
                stack.append(source)
    return needed


@writer("accumulate_grad", writes=("self",))
def _accumulate(self: Array, gradient: Array) -> None:
    np.add(self, gradient, out=self, casting="unsafe")


@primitive(None, axes=ELEMENTS_OF_FIRST)
def _copied_like(self: Array, like: Array) -> Array:
    """A copy with the strides of another array."""
    copied = np.empty_like(like, dtype=self.dtype)
    np.copyto(copied, self)
    return copied


def accumulate(leaf: Tensor, gradient: Tensor, fresh: bool = False) -> None:
    """Add `gradient` to `leaf.grad`; a `fresh` one may become it."""
    present = leaf._grad
    modes = THREAD.modes
    if present is None:
        leaf._grad = _copy_in_graph(gradient, leaf) if modes.grad else owned(gradient, leaf, fresh)
    elif modes.grad or _dispatches(present) or _dispatches(gradient):
        leaf._grad = present + gradient
    elif gradient._kind.indirect or present._kind.indirect:
        _accumulate_indirectly(leaf, present, gradient)
    else:
        _accumulate(present, gradient)


def _copy_in_graph(gradient: Tensor, like: Tensor) -> Tensor:
    """A copy that has a history, with the strides of `like` if that has no gaps: users change `grad` in place."""
    if _dispatches(gradient) or gradient.layout is not strided or like.layout is not strided:
        return gradient.clone()
    shape, strides = like._array.shape, like.stride()
    if gradient._array.shape != shape or not is_dense(shape, strides):
        return gradient.clone(memory_format=contiguous_format)
    return gradient.new_empty_strided(shape, strides).copy_(gradient)


def _dispatches(tensor: Tensor) -> bool:
    """Whether a tensor's class runs operators by itself: what is in its memory says nothing then."""
    return type(tensor) is not Tensor and hasattr(type(tensor), "__torch_dispatch__")


def _accumulate_indirectly(leaf: Tensor, present: Tensor, gradient: Tensor) -> None:
    """Add a gradient where NumPy cannot: one of them has no data, is sparse, or of a narrow type."""
    if gradient._kind.dataless:
        return
    total = present
    if gradient.layout is strided and present.layout is not strided:
        leaf._grad = gradient + total  # all elements are there now: a sparse gradient cannot hold them
    else:
        leaf._grad = total.add_(gradient) if present.layout is strided else total + gradient


def owned(gradient: Tensor, like: Tensor, fresh: bool) -> Tensor:
    """`gradient` outside the graph, in memory that nobody else sees and with the strides of `like`.

    A fresh gradient gives up its array, unless a second tensor holds that.
    """
    if type(gradient) is not Tensor and _dispatches(gradient):
        return gradient.detach()
    array, kind, model = gradient._array, gradient._kind, like._array
    modes = THREAD.modes
    counter: Any = None if modes.inference else [0, None]
    if (
        fresh
        and sys.getrefcount(array) <= _REFERENCES_TO_ITS_ARRAY
        and (array.strides == model.strides or not modes.grad_layout)
        and (array.base is None or _has_own_memory(array, gradient._view))
    ):
        return Tensor._from_parts((array, kind, counter))
    same_shape = array.shape == model.shape
    if kind.indirect:
        if gradient._kind.dataless:
            return Tensor._from_parts((array, kind, counter))
        if gradient.layout is not strided:
            return gradient.detach().clone()
        if kind.plain is not kind and fresh and array.strides == model.strides:
            return Tensor._from_parts((array.copy("K"), kind, counter))
    # A tensor that got another shape in place retains the gradient of what it was.
    follows = same_shape and like.layout is strided and modes.grad_layout
    if follows and not model.flags.forc and not is_dense(array.shape, like.stride()):
        with recording(False):
            return gradient.clone(memory_format=contiguous_format).detach()
    copied = _copied_like(gradient, like if follows else gradient)
    return Tensor._from_parts((copied._array, kind.plain, counter))


def _references_to_array(gradient: Any) -> int:
    array = gradient._array
    return sys.getrefcount(array)


_REFERENCES_TO_ITS_ARRAY = _references_to_array(SimpleNamespace(_array=object()))
"""What `owned` counts where one tensor alone holds an array. Python 3.14 counts a variable once, others twice."""


def _has_own_memory(array: Any, view: View | None = None) -> bool:
    """Whether nobody else sees the memory of an array: it owns it, or is all of one to which nobody else refers, as
    a product that was turned is. The tensor of which that makes a `view` may refer to it, if nobody else has that one.
    """
    if array.base is None:
        return True
    is_all = type(array.base) in ARRAY_CLASSES and array.base.base is None and array.base.nbytes == array.nbytes
    in_view = 1 if view is not None and _references_to_viewed(view) <= _REFERENCES_TO_NOBODYS_BASE else 0
    return is_all and _references_to_base(array) <= _REFERENCES_TO_NOBODYS_BASE + in_view


def _references_to_base(array: Any) -> int:
    return sys.getrefcount(array.base)


def _references_to_viewed(view: View) -> int:
    return sys.getrefcount(view.base)


_REFERENCES_TO_NOBODYS_BASE = _references_to_base(np.empty((1, 2)).T)


def checked(gradient: Tensor, target: Target, number: int, source: Any) -> Tensor:
    """`gradient` in the shape and dtype of what it is the gradient of; broadcasts are summed back here, and only
    here.
    """
    if isinstance(target, Node):
        shape, kind = target.outputs[number]
    else:
        shape, kind = target._array.shape, target._kind
    if type(gradient) is not Tensor and not isinstance(gradient, Tensor):
        raise RuntimeError(
            f"expected Variable or None (got {type(gradient).__name__}) as gradient from {_name(source)}"
        )
    if gradient._array.shape != shape and not _had_shape(target, gradient._array.shape):
        if not expandable(shape, gradient._array.shape):
            raise RuntimeError(
                f"{_name(source)} returned an invalid gradient at index {_position(source, target, number)} - got "
                f"{list(gradient._array.shape)} but expected shape compatible with {list(shape)}"
            )
        gradient = sum_to_shape(gradient, shape)
    if gradient._kind is not kind:
        given = gradient._kind
        if type(gradient) is Tensor and given.device is kind.device and not (given.indirect or given.dtype.is_complex):
            if kind.dtype.is_complex:
                return SLOTS.converted(gradient, kind.plain, None)
            return cast(gradient, kind)
        if kind.dtype.is_complex or not gradient._kind.dtype.is_complex:
            gradient = gradient.to(kind.dtype)
        else:
            gradient = gradient.real.to(kind.dtype)
        if gradient._kind.device is not kind.device:
            if not shape:  # a number met a tensor on another device
                return gradient.to(kind.device)
            raise RuntimeError(
                f"{_name(source)} returned an invalid gradient at index {_position(source, target, number)} - expected "
                f"device {kind.shown} but got {gradient.device}: move it there"
            )
    return gradient


def _had_shape(target: Target, shape: tuple[int, ...]) -> bool:
    """Whether a target is a leaf that had this shape before it was changed in place, or was given other data."""
    extra = None if isinstance(target, Node) else target._extra
    return extra is not None and extra.former_shapes is not None and shape in extra.former_shapes


def _in_present_shape(gradient: Tensor, leaf: Tensor) -> Tensor:
    """A gradient of what a leaf was before its shape was changed, in the shape of its `grad`, or of itself."""
    shape = (leaf if leaf._grad is None else leaf._grad)._array.shape
    given = gradient._array.shape
    if given == shape:
        return gradient
    if [size for size in given if size != 1] == [size for size in shape if size != 1]:
        return gradient.reshape(shape)
    return gradient.new_empty(shape).copy_(gradient)


def _name(source: Any) -> str:
    return f"Function {source.name()}" if isinstance(source, Node) else str(source)


def _position(source: Any, target: Target, number: int) -> int:
    """Which of the gradients that a node returns goes to an output of `target`."""
    if not isinstance(source, Node):
        return number
    return next((i for i, edge in enumerate(source.edges) if edge is not None and edge[0] is target), number)


def fit_to_edges(node: Node, results: Sequence[Any]) -> Sequence[Any]:
    """Results of a node that returned more or fewer gradients than it has inputs: surplus None may be dropped."""
    wanted = len(node.edges)
    if len(results) > wanted and all(each is None for each in results[wanted:]):
        return results[:wanted]
    raise RuntimeError(
        f"function {node.name()} returned an incorrect number of gradients (expected {wanted}, got {len(results)})"
    )


# ----- hooks ------------------------------------------------------------------------------------------------------


def run_tensor_hooks(node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """The hooks of the tensors that this node made; then what `retain_grad` asked to keep."""
    hooks = node._hooks
    assert hooks is not None
    for number, registered in hooks.tensor.items():
        if registered:
            grads[number] = run_hooks_on(grads[number], registered)
    for number, reference in hooks.retain.items():
        tensor = reference()
        gradient = grads[number]
        if tensor is not None and gradient is not None:
            _retain(tensor, gradient)
    return grads


def _retain(tensor: Tensor, gradient: Tensor) -> None:
    with _accumulation:
        if tensor._grad is None:
            # Contiguous whatever the tensor's strides, as PyTorch keeps it; a leaf's gradient follows the leaf's.
            is_strided = gradient.layout is strided
            tensor._grad = gradient.clone(memory_format=contiguous_format) if is_strided else gradient.clone()
        else:
            tensor._grad = tensor._grad + gradient
