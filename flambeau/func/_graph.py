"""Derivatives at any depth of levels: the engine works on values, outside of all levels.

The examples of a level are independent of one another, so that the gradients of all of them are one backward pass over
the values. What is differentiated by gets an alias for the purpose, connected with what the caller gave: an outer
derivative sees through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.modes import THREAD
from .._core.node import Node
from .._core.process.interrupts import uninterrupted
from .._core.tensor import Tensor
from .._dispatch.public.overrides import DisableTorchFunctionSubclass
from .._ops.create.like import ones_like, zeros_like
from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from ._level import Level, levels


class Ground:
    """A context outside of all levels but `inside`."""

    def __init__(self, *inside: Level) -> None:
        self.inside = inside

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self.before = modes.interpreters
        inside = (*[each for each in self.before if not isinstance(each, Level)], *self.inside)
        modes.interpreters = inside
        modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.interpreters = self.before
        modes.refresh()


def lowered(tensor: Tensor, stack: Sequence[Level]) -> Tensor:
    """The value under all levels of `stack`: their examples are its first dimensions, the outermost's first."""
    for level in reversed(stack):
        with level.outside():
            tensor = level.front(tensor)
    return tensor


def lifted(tensor: Tensor, stack: Sequence[Level]) -> Tensor:
    """The example of all levels of `stack` whose value is `tensor`."""
    for level in stack:
        tensor = level.wrapped(tensor)
    return tensor


class Tracking:
    """The inputs of one derivative, followed through a function."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self.stack = levels()
        self.outer = THREAD.modes.grad
        self.own: set[Any] = set()
        self.values = [self._alias(each) for each in inputs]
        self.inputs = [lifted(each, self.stack) for each in self.values]

    def _alias(self, tensor: Tensor) -> Tensor:
        value = lowered(tensor, self.stack)
        with Ground(), enable_grad():
            if self.outer and value.requires_grad:
                return value.view_as(value)
            return self.leaf(value.detach())

    def leaf(self, value: Tensor) -> Tensor:
        """`value` as a leaf of this derivative alone."""
        self.own.add(value.requires_grad_())
        return value

    def value_of(self, output: Tensor) -> Tensor:
        """The value of a result of the function."""
        return lowered(output, self.stack)

    def finished(self, value: Tensor) -> Tensor:
        """A result for the caller, in the graph only if something that the caller gave leads there."""
        with Ground():
            if value.requires_grad and not (self.outer and self._leads_outside(value)):
                value = value.detach()
        return lifted(value, self.stack)

    def _leads_outside(self, value: Tensor) -> bool:
        edge = value._edge()
        seen: set[Any] = set()
        waiting = [] if edge is None else [edge[0]]
        while waiting:
            target = waiting.pop()
            if target in seen:
                continue
            seen.add(target)
            if isinstance(target, Node):
                waiting += [each[0] for each in target.edges if each is not None]
            elif target not in self.own:
                return True
        return False

    def gradients(self, outputs: Sequence[Tensor], seeds: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The gradients by the inputs, given those of the values `outputs`; ones if they are not given."""
        with Ground(), enable_grad():
            return _grad(outputs, self.values, [ones_like(each) for each in outputs] if seeds is None else seeds)


def _grad(outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Tensor]:
    """`autograd.grad` with zeros for what does not matter."""
    pairs = [(output, seed) for output, seed in zip(outputs, seeds, strict=True) if output._edge() is not None]
    found: Sequence[Any] = [None] * len(inputs)
    if pairs:
        with DisableTorchFunctionSubclass():  # the arguments of a transform are plain tensors inside
            found = grad(
                [each for each, _ in pairs], inputs, [each for _, each in pairs], create_graph=True, allow_unused=True
            )
    return [zeros_like(each) if got is None else got for each, got in zip(inputs, found, strict=True)]


class LinearMap:
    """The product of a Jacobian with vectors, to be called once, or inside further levels."""

    def __init__(self, tracking: Tracking, outputs: Sequence[Tensor], forward: bool) -> None:
        self.tracking = tracking
        self.outputs = list(outputs)
        self.sources = tracking.values
        self.forward = forward
        if forward:
            # The backward pass is linear in the gradient that it starts from: its derivative by that is the transpose.
            with Ground(), enable_grad():
                self.rows = [tracking.leaf(zeros_like(each).detach()) for each in self.outputs]
                self.outputs = _grad(self.outputs, self.sources, self.rows)
                self.sources = self.rows

    def __call__(self, vectors: Sequence[Tensor]) -> list[Tensor]:
        """The products, for vectors like the outputs of the map (or, forward, like its inputs)."""
        stack = levels()
        made_in = self.tracking.stack
        further = [each for each in stack if each not in made_in and each.leading]
        own, more = _leading(made_in), _leading(further)
        seeds = [_regrouped(lowered(each, stack), own, more) for each in vectors]
        outer = THREAD.modes.grad
        with Ground(*further), enable_grad():
            products = _grad(self.outputs, self.sources, [lifted(each, further) for each in seeds])
            values = [lowered(each, further) for each in products]
        results = []
        with Ground():
            for each in values:
                if each.requires_grad and not (outer and self.tracking._leads_outside(each)):
                    each = each.detach()
                results.append(_regrouped(each, more, own))
        return [lifted(each, stack) for each in results]


def _leading(stack: Sequence[Level]) -> int:
    """How many dimensions of examples the levels of `stack` have together."""
    return sum(each.leading for each in stack)


def _regrouped(value: Tensor, first: int, second: int) -> Tensor:
    """`value` with its `first` dimensions after the `second` ones that follow them."""
    if not first or not second:
        return value
    ndim = value.dim()
    with Ground():
        order = [*range(first, first + second), *range(first), *range(first + second, ndim)]
        return value.permute(order)
