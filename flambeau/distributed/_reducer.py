"""The exchange of gradients during a backward pass: a bucket starts as soon as all of its gradients are there."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._core.device import CPU
from .._core.dtype import float32, float64
from .._core.node import Node
from .._core.tensor import Tensor, wrap
from .._dispatch.dispatch import Array
from .._dispatch.writer import writer
from ..autograd.grad_mode import no_grad
from . import _calls
from ._buckets import Bucket, GradBucket, divided
from ._collective import begun
from ._engines import Engine, Pending
from ._same_bits import check_outputs, is_asked_for, refuse
from ._world import ProcessGroup
from .reductions import ReduceOp

Hook = Callable[[Any, GradBucket], Any]
_EXACT = (float32, float64)
"""Dtypes whose products with a number NumPy rounds as ops do."""
_BETWEEN_LOOKS = 0.0003
"""Seconds."""


class Reducer:
    """The buckets of a model, and how far its backward pass is."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: ProcessGroup,
        limits: Sequence[int],
        find_unused: bool,
        gradients_are_views: bool,
        static: bool,
    ) -> None:
        self._parameters = list(parameters)
        self._names = list(names)
        self._group = group
        self._limits = limits
        self._find_unused = find_unused
        self._gradients_are_views = gradients_are_views
        self._static = static
        self._position = {id(each): index for index, each in enumerate(self._parameters)}
        self._hook: tuple[Any, Hook] | None = None
        self.divisor: float = group.size()
        self._expects = False
        """Whether a backward pass is to come, or under way, whose gradients are exchanged."""
        self._ready: set[int] = set()
        self._unused: set[int] = set()
        self._static_unused: set[int] | None = None
        self._order: list[int] = []
        self._is_rebuilt = False
        self._next = 0
        self._looked = 0.0
        self.passes = 0
        # The last layers have their gradients first.
        self._make_buckets(list(reversed(range(len(self._parameters)))))
        self._handles = [
            each.register_post_accumulate_grad_hook(functools.partial(self._gradient_is_there, position))
            for position, each in enumerate(self._parameters)
        ]

    def _make_buckets(self, order: Sequence[int]) -> None:
        arranged = [self._parameters[position] for position in order]
        self._buckets = [
            Bucket([arranged[position] for position in positions], self._group._engine.empty)
            for positions in divided(arranged, self._limits)
        ]
        self._place = {
            self._position[id(each)]: (bucket, number)
            for bucket in self._buckets
            for number, each in enumerate(bucket.parameters)
        }

    @property
    def buckets(self) -> list[Bucket]:
        """The buckets, in the order in which they are exchanged."""
        return self._buckets

    def register_hook(self, state: Any, hook: Hook) -> None:
        """Let a function exchange the buckets."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = state, hook

    def remove_hooks(self) -> None:
        """Leave gradients alone from now on."""
        for handle in self._handles:
            handle.remove()

    # ----- before a backward pass -------------------------------------------------------------------------------

    def rebuild(self) -> bool:
        """After the first pass: buckets in the order in which gradients came, as rank 0 saw it; whether it was done."""
        if self._is_rebuilt or self._find_unused or self.passes == 0:
            return False
        self._is_rebuilt = True
        whole = len(self._order) == len(self._parameters)
        order = wrap(np.array(self._order if whole else range(len(self._parameters))[::-1], np.int64), CPU)
        _calls.broadcast(order, group=self._group, group_src=0)
        self._make_buckets([int(each) for each in order._array])
        return True

    def prepare(self, outputs: Iterable[Tensor]) -> None:
        """Expect the backward pass of these outputs."""
        if is_asked_for():
            outputs = list(outputs)
            check_outputs(outputs, self._parameters, self._names)
            if self._hook is not None:
                refuse("a communication hook", "Register none")
        if self._expects and self._ready:
            missing = [self._names[index] for index in range(len(self._parameters)) if index not in self._ready]
            if missing:
                raise RuntimeError(
                    "Expected to have finished reduction in the prior iteration before starting a new one. These "
                    f"parameters got no gradient on rank {self._group.rank()}: {', '.join(missing[:20])}. If they are "
                    "not used in every forward pass, make the DistributedDataParallel with "
                    "find_unused_parameters=True; all outputs of the forward function must take part in the loss"
                )
        for bucket in self._buckets:
            bucket.missing = len(bucket.parameters)
            bucket.pending, bucket.begun = None, False
        self._expects, self._next = True, 0
        self._ready, self._order, self._unused = set(), [], set()
        if self._find_unused or self._static:
            self._unused = self._find_unused_from(outputs)
            for position in sorted(self._unused):
                bucket, number = self._place[position]
                bucket.parts()[number].zero_()
                self._mark(position)

    def prepare_for_backward(self, outputs: Iterable[Tensor]) -> None:
        """`prepare` under PyTorch's name; without outputs every parameter is expected to get a gradient.

        Programs call it after forward passes under `no_sync` whose gradients are to be exchanged after all.
        """
        given = list(outputs)
        finds, self._find_unused = self._find_unused, self._find_unused and bool(given)
        try:
            self.prepare(given)
        finally:
            self._find_unused = finds

    def _find_unused_from(self, outputs: Iterable[Tensor]) -> set[int]:
        if self._static and self._static_unused is not None:
            return self._static_unused
        used = _reached(outputs)
        unused = {position for identity, position in self._position.items() if identity not in used}
        if self._static:
            self._static_unused = unused
        return unused

    # ----- during it --------------------------------------------------------------------------------------------

    def _gradient_is_there(self, position: int, parameter: Tensor) -> None:
        if not self._expects or position in self._ready:
            return
        bucket, number = self._place[position]
        gradient = parameter.grad
        assert gradient is not None
        if is_asked_for() and not _is_new(gradient):
            refuse("gradients that are added to those of another step", "Call zero_grad() before each backward pass")
        self._put(gradient, bucket.parts()[number])
        self._order.append(position)
        self._mark(position)
        if self._expects and self._next:
            self._look_after_buckets()

    def _look_after_buckets(self) -> None:
        """Move along what is under way, now and then: a look takes as long as a small op."""
        now = time.perf_counter()
        if now - self._looked > _BETWEEN_LOOKS:
            self._group._engine.progress()
            self._looked = time.perf_counter()

    def _put(self, gradient: Tensor, view: Tensor) -> None:
        """Put a gradient into its bucket; divided, unless a hook does that."""
        is_there = gradient._array is view._array
        if self._hook is None:
            share = 1 / self.divisor
            if _is_simple(gradient, view):
                _scale_into(view, gradient, share)
                return
            with no_grad():
                if is_there:
                    view.mul_(share)
                else:
                    view.copy_(gradient * share)
        elif not is_there:
            with no_grad():
                view.copy_(gradient)

    def _mark(self, position: int) -> None:
        self._ready.add(position)
        bucket, _ = self._place[position]
        bucket.missing -= 1
        # All processes exchange the buckets in the same order, whichever is complete first.
        while self._next < len(self._buckets) and self._buckets[self._next].missing == 0:
            self._begin(self._next)
            self._next += 1
        if self._next == len(self._buckets) and len(self._ready) == len(self._parameters):
            self._finish()

    def _begin(self, index: int) -> None:
        bucket = self._buckets[index]
        bucket.begun = True
        if self._hook is None:
            bucket.pending = begun("all_reduce", self._group._engine, [bucket.buffer], _sum, 1)
        else:
            state, hook = self._hook
            bucket.pending = hook(state, GradBucket(bucket, index, index == len(self._buckets) - 1))

    def _finish(self) -> None:
        """Wait for all buckets, and give the gradients back."""
        self._expects = False
        self.passes += 1
        used_anywhere = self._used_anywhere() if self._unused_may_differ() else None
        with no_grad():
            for bucket in self._buckets:
                result = bucket.pending.wait()
                if self._hook is not None:
                    result = result[0] if isinstance(result, (list, tuple)) else result
                    if result is not bucket.buffer:
                        bucket.buffer.copy_(result)
                self._give_back(bucket, used_anywhere)

    def _give_back(self, bucket: Bucket, used_anywhere: set[int] | None) -> None:
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            if used_anywhere is not None and self._position[id(parameter)] not in used_anywhere:
                continue  # nobody used it: its gradient stays what it was
            if self._gradients_are_views:
                if parameter.grad is None or parameter.grad._array is not view._array:
                    parameter.grad = view
                continue
            gradient = parameter.grad
            if gradient is None:
                parameter.grad = view
                bucket.is_given_away = True
            elif _is_simple(gradient, view) and _is_new(gradient) and gradient._array.strides == view._array.strides:
                gradient._array = view._array
                bucket.is_given_away = True
            else:
                gradient.copy_(view)

    def _unused_may_differ(self) -> bool:
        return self._find_unused or bool(self._static and self._unused)

    def _used_anywhere(self) -> set[int]:
        """The parameters that some process used."""
        used = np.ones(len(self._parameters), np.int32)
        used[list(self._unused)] = 0
        tensor = wrap(used, CPU)
        _calls.all_reduce(tensor, group=self._group)
        return {index for index, count in enumerate(tensor._array) if count}

    # ----- for processes that have no more inputs ----------------------------------------------------------------

    def join_others(self) -> None:
        """Take part in the exchange of the others, without gradients of one's own."""
        for position in range(len(self._parameters)):
            bucket, number = self._place[position]
            bucket.parts()[number].zero_()
        for index in range(len(self._buckets)):
            self._begin(index)
        if self._find_unused:
            self._unused = set(range(len(self._parameters)))
            self._used_anywhere()
        for bucket in self._buckets:
            bucket.pending.wait()
        self.passes += 1


def _sum(engine: Engine, arrays: list[Any]) -> Pending:
    return engine.all_reduce(arrays[0], ReduceOp.SUM)


@writer("scale_into", writes=("target",), counted=False)
def _scale_into(target: Array, source: Array, factor: float) -> None:
    np.multiply(source, factor, out=target)


def _is_simple(gradient: Tensor, view: Tensor) -> bool:
    """Whether a gradient and its place in a bucket are of one exact dtype: a product rounds there as it does alone."""
    kind = gradient._kind
    return (
        kind is view._kind
        and kind.is_cpu
        and kind.dtype in _EXACT
        and type(gradient) is Tensor
        and gradient._array.shape == view._array.shape
    )


def _is_new(gradient: Tensor) -> bool:
    """Whether the backward pass has made the gradient, and did not add to one that was there: nobody looks at its
    memory then, and it may have other memory instead.
    """
    counter = gradient._counter
    return counter is not None and counter[0] == 0 and gradient._view is None and gradient._grad_fn is None


def _reached(outputs: Iterable[Tensor]) -> set[int]:
    """The identities of the leaves that gradients of the outputs arrive at."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting: list[Any] = [edge[0] for edge in (output._edge() for output in outputs) if edge is not None]
    while waiting:
        target = waiting.pop()
        if id(target) in seen:
            continue
        seen.add(id(target))
        if isinstance(target, Node):
            waiting += [edge[0] for edge in target.edges if edge is not None]
        else:
            found.add(id(target))
    return found
