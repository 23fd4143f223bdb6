"""Programs whose results require gradients: a forward and a backward part, joined by one node of the graph.

What the backward part needs of the forward part is kept on the node: arrays in between as they are, tensors that others
can change with their versions, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..._core.geometry.layout import contiguous_array
from ..._core.modes import THREAD
from ..._core.node import Node, OpNode, SavedTensor, initialise
from ..._core.process.collector import collector_paused
from ..._core.tensor import Tensor
from ..._core.text.errors import GRAPH_FREED
from ..._dispatch.arguments.autocast import switched_off
from ...autograd import root_gradients
from ...autograd.engine import Uses, has_leaf_hooks, run_backward
from .._errors import report_fault
from ..capture.guards import State
from ..capture.recorder import Recorder
from ..capture.watch import Watch
from ..passes import improved
from ..program.items import Call, Item, Read, Value, uses, values_in
from .absent import PartialBackward
from .layouts import Layouts
from .resume import stopped_at
from .source import Source
from .stages import Stage, stages_of

_MOST_USES, _MOST_BYTES_OF_USES = 4, 1 << 26
"""Gradients of so many uses of a tensor, or of so many bytes, are handed on one by one."""
_HOOKS = "its backward pass has hooks, which run once for each backward"


class Joint:
    """The backward pass of a recorded call, recorded behind it."""

    def __init__(self, recorder: Recorder, outputs: Sequence[Tensor]) -> None:
        program = recorder.program
        self.boundary = len(program.items)
        self.outputs = list(outputs)
        inputs = {number: each for number, each in program.inputs.items() if each.requires_grad}
        self.inputs = list(inputs.values())
        """Where gradients go; a tensor that is used more than once is there for each use."""
        self.arriving: list[Value] = []
        """The gradients of the outputs, as inputs of the backward part."""
        self.results: list[Value | None] = []
        """The gradients of the inputs."""
        self.behind: list[frozenset[int]] = []
        """The positions of the outputs that each of these depends on."""
        self.partial: PartialBackward | None = None
        """What is left of the backward pass where some of several outputs take no part in a loss."""
        self.freed = False
        """Whether the call ran backward itself, so that its results have nothing behind them any more."""
        arriving = [_ones_like(each) for each in outputs]
        self.arriving = [recorder.new_input(each) for each in arriving]
        if (obstacle := _obstacle(recorder, self.outputs, bool(self.inputs))) is not None:
            recorder.refuse(obstacle)
            return
        if not self.inputs:
            recorder.refuse("it returns what requires gradients, with no leaf behind it")
            return
        edges = [each._edge() or (each, 0) for each in self.inputs]
        uses: Uses = {}
        try:
            roots = root_gradients(tuple(self.outputs), tuple(arriving))
            found = run_backward(roots, edges, True, False, False, uses)
        except Exception as error:
            if GRAPH_FREED in str(error):
                self.freed = True
                del program.items[self.boundary :]
            else:  # it is the caller's to find out, if he asks for gradients
                recorder.refuse(f"its backward pass fails: {error}")
            return
        # What the results do not depend on, as what was detached, is not behind them: backward must not go there.
        reached = [
            (each, part)
            for each, edge, grad in zip(self.inputs, edges, found, strict=True)
            if grad is not None
            for part in _one_by_one(grad, uses.get(edge, []))
        ]
        order = {leaf: number for number, (leaf, _) in enumerate(uses)}  # hooks of leaves run in that of the plain call
        reached.sort(key=lambda each: order.get(each[0], len(order)))
        self.inputs = [each for each, _ in reached]
        self.results = [recorder.known(grad) for _, grad in reached]
        self.behind = _behind(program.items[self.boundary :], self.arriving, self.results)
        if len(self.arriving) > 1:
            added = [recorder.value_of(each) for several in uses.values() for each in several]
            sums = [each for each in added if each is not None]
            self.partial = PartialBackward(program.items[self.boundary :], self.arriving, self.results, sums)

    def parts(self, program: Any, for_all_sizes: bool) -> tuple[list[Item], list[Item], list[Value]]:
        """The forward items, the backward items, and the values that the latter take from the former."""
        forward = program.items[: self.boundary]
        results = [each for each in self.results if each is not None]
        backward = improved(program.items[self.boundary :], results, for_all_sizes)
        made = {each.number for each in self.arriving}
        saved: dict[Value, None] = {}
        for item in backward:  # in order: an op may give back the very array that it was given
            saved.update(dict.fromkeys([each for each in uses(item) if each.number not in made]))
            made.update([each.number for each in values_in(getattr(item, "results", ()))])
        saved.update(dict.fromkeys([each for each in self.results if each is not None and each.number not in made]))
        return forward, backward, list(saved)


def joint_of(state: State, recorder: Any, left: Any, watch: Watch) -> Joint | None:
    """The backward pass of a call, if something that it leaves has a history."""
    before = {id(tensor) for tensor, _ in state.tensors.values()}
    leaves = [each for each in recorder.made.tensors(left) if each.requires_grad]
    outputs = [each for each in leaves if id(each) not in before and recorder.value_of(each) is not None]
    if not outputs or recorder.reason is not None:
        return None
    with switched_off(), watch.looking_away() if is_of_ops(outputs) else nullcontext():
        joint = Joint(recorder, outputs)
    for item in recorder.program.items[joint.boundary :]:
        if isinstance(item, Read):
            recorder.refuse(f"its backward pass looks at elements ({item.place})")
    return joint


def _behind(items: Sequence[Item], arriving: Sequence[Value], results: Sequence[Value | None]) -> list[frozenset[int]]:
    """The positions of the arriving gradients that each result depends on; all of them where that is not known."""
    every = frozenset(range(len(arriving)))
    known = {each.number: frozenset((position,)) for position, each in enumerate(arriving)}
    for item in items:
        found = frozenset().union(*[known.get(each.number, frozenset()) for each in uses(item)])
        known.update([(each.number, found) for each in values_in(getattr(item, "results", None))])
        if isinstance(item, Call) and item.op.writes:  # whatever else lies in that memory
            known = {number: each | found for number, each in known.items()}
    return [every if each is None else known.get(each.number) or every for each in results]


def _one_by_one(total: Tensor, uses: Sequence[Tensor]) -> Sequence[Tensor]:
    """The gradients of a tensor's uses. The engine adds them to those of uses outside in the order of the plain call.

    Of very many large ones, the sum alone is handed on: each of them would take memory of its own.
    """
    if not uses or (len(uses) > _MOST_USES and len(uses) * total._array.nbytes > _MOST_BYTES_OF_USES):
        return [total]
    return uses


def _obstacle(recorder: Recorder, outputs: Sequence[Tensor], has_inputs: bool) -> str | None:
    """Why a backward pass from here is not recorded, if it has hooks, or ends at a leaf that the call has made.

    A leaf that the caller does not get has no gradient that anybody sees: it is left out where others have one.
    """
    seen_by_caller = {id(each) for each in outputs}
    seen_by_caller.update(id(each._view.base) for each in outputs if each._view is not None)
    waiting: list[Any] = [each.grad_fn or each for each in outputs]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Tensor):
            value = recorder.value_of(node)
            is_made = value is not None and value.number not in recorder.program.inputs
            if is_made and (not has_inputs or id(node) in seen_by_caller or has_leaf_hooks(node)):
                return "it makes a leaf that requires gradients, and returns what depends on it"
        elif node is not None and id(node) not in seen:
            if node._hooks is not None:
                return _HOOKS
            seen.add(id(node))
            waiting += [each[0] for each in node.edges if each is not None]
    return None


def is_of_ops(outputs: Sequence[Tensor]) -> bool:
    """Whether the graph behind tensors has the nodes of ops alone, and no hook unpacks what they have saved: then no
    Python of the user's runs backward.
    """
    waiting: list[Any] = [each.grad_fn for each in outputs]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node is not None and not isinstance(node, Tensor) and id(node) not in seen:
            if not isinstance(node, OpNode) or any(_has_hook(getattr(node, each, None)) for each in node.held_names):
                return False
            seen.add(id(node))
            waiting += [each[0] for each in node.edges if each is not None]
    return True


def _has_hook(saved: Any) -> bool:
    """Whether a hook may bring a saved tensor, or one of a list of them, back."""
    if type(saved) in (list, tuple):
        return any(map(_has_hook, saved))
    return isinstance(saved, SavedTensor) and saved.special is not None


def _ones_like(tensor: Tensor) -> Tensor:
    kind = tensor._kind
    array = kind.backend.from_host(np.ones(tensor._array.shape, kind.dtype.numpy))
    return Tensor._from_parts((array, kind, [0, None]))


class CompiledFunctionBackward(Node):
    """The backward part of a compiled call."""

    may_be_absent = True
    __slots__ = ("_arrays", "_region", "_tensors", "makes_gradients")

    def __init__(self, region: Region, inputs: Sequence[Tensor]) -> None:
        initialise(self, tuple([each._edge() for each in inputs]), region.outputs)
        self._region = region
        self.makes_gradients = region.makes_gradients
        self._tensors: Any = None
        self._arrays: Any = None
        """What the forward part saves; the program puts it here in the end."""

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        if self._arrays is None:
            raise RuntimeError(GRAPH_FREED)
        if THREAD.modes.grad:
            raise RuntimeError(
                "torch.compile does not support double backward: what a compiled function recorded cannot be "
                "differentiated again. Call the function itself where you need create_graph=True."
            )
        region = self._region
        absent = frozenset([position for position, each in enumerate(grads) if each is None])
        backward = region.backward if not absent else region.backward_without(absent)
        arriving = [
            kind.backend.zeros(shape, kind.dtype.numpy) if each is None else each._array
            for each, (shape, kind) in zip(grads, region.outputs, strict=True)
        ]
        saved = [each.unpack(self)._array for each in self._tensors]
        try:
            results = None if absent else region.in_other_layouts(arriving, [*saved, *self._arrays])
            if results is None:
                results = backward(*map(contiguous_array, arriving), *saved, *self._arrays)
        except Exception as error:
            stop = stopped_at(error)
            if stop is None:
                raise
            results = stop.resume()
            report_fault("a backward pass", error)
        return [
            None if array is None or behind <= absent else Tensor._from_parts((array, kind, [0, None]))
            for array, kind, behind in zip(results, region.kinds, region.behind, strict=True)
        ]

    def release(self) -> None:
        for each in self._tensors or ():
            each.release()
        self._tensors = self._arrays = None


class FreedBackward(Node):
    """Behind the results of a call that ran backward itself."""

    __slots__ = ()

    def __init__(self, outputs: Any) -> None:
        initialise(self, (), outputs)

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        raise RuntimeError(GRAPH_FREED)


class Region:
    """What the nodes of one program share."""

    stages: Sequence[Stage] = ()
    """What the backward part consists of."""
    device_segments: Sequence[Any] = ()
    takes_layouts = False
    """Whether gradients that arrive in other layouts need not be copied."""
    layouts: Layouts | None = None
    """The backward part for such gradients."""

    def __init__(self, joint: Joint, backward: Sequence[Item], saved: Sequence[Value]) -> None:
        self.note_sides(joint, saved)
        self._items, self._results = list(backward), list(joint.results)

    def plan(self) -> None:
        """Plan the backward part, and write it: a program that is never run a second time needs none."""
        source = Source()
        source.items(self._items, [each for each in self._results if each is not None])
        self.stages, self.device_segments = stages_of(source.parts, backward=True), source.device_segments
        results = ["None" if each is None else f"v{each.number}" for each in self._results]
        source.lines.append(f"return [{', '.join(results)}]")
        self.backward: Callable[..., Any] = source.function("backward", ", ".join(self.parameters))
        if self.makes_gradients:
            self.layouts = Layouts(self._items, self._results, self.parameters)
            self.takes_layouts = True
        self._items.clear()

    def note_sides(self, joint: Joint, saved: Sequence[Value]) -> None:
        """Take note of what the backward part is a function of, and where gradients come from and go."""
        self.outputs = tuple([(each._array.shape, each._kind) for each in joint.outputs])
        self.kinds = [each._kind for each in joint.inputs]
        self.makes_gradients = all(each.is_cpu for each in self.kinds)
        """Whether gradients lie in memory of their own. Those of a device lie in its graph's, which is used again."""
        self.behind = joint.behind
        """The positions of the outputs that each input's gradient depends on: without these it has none."""
        self.parameters = list(dict.fromkeys([f"v{each.number}" for each in (*joint.arriving, *saved)]))
        self._partial = joint.partial

    def backward_without(self, absent: frozenset[int]) -> Callable[..., Any]:
        """The backward part where the gradients of some outputs are absent; they are zeros if there is no such one."""
        found = None
        try:
            with collector_paused():
                found = None if self._partial is None else self._partial.without(absent, self.parameters)
        except Exception as error:
            self._partial = None
            report_fault("a backward pass without some gradients", error)
        return self.backward if found is None else found

    def in_other_layouts(self, arriving: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any] | None:
        """The results for arriving gradients of which some are not contiguous; None: they have to be copied first."""
        if all(each.flags.c_contiguous for each in arriving):
            return None
        if self.takes_layouts:
            try:
                with collector_paused():
                    return self._as_they_arrive(arriving, rest)
            except Exception as error:
                self.takes_layouts = False
                report_fault("a backward pass of gradients in other layouts", error)
        try:
            return None if self.layouts is None else self.layouts.one_by_one(arriving, rest)
        except Exception:
            return None  # if it is an error of the plain call, copies lead to it, too

    def _as_they_arrive(self, arriving: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any] | None:
        assert self.layouts is not None
        return self.layouts.run(arriving, rest)

    def node(self, inputs: Sequence[Tensor]) -> Node:
        """The node of one call."""
        return CompiledFunctionBackward(self, inputs)
