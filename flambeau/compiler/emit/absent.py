"""Backward parts for losses that some results of a call take no part in.

A plain backward pass does not go where no gradient arrives. Zeros in the place of that gradient are not the same: zero
times an infinite derivative is NaN. So the ops that depend on absent gradients alone are left out, and where gradients
of several paths are added, those that are there are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..._core.device import contiguous_format
from ..._core.tensor import Tensor
from ..._ops.tensor.copy import _clone
from ..passes import improved
from ..program.items import Call, Item, Value, uses, values_in
from .source import Source


class PartialBackward:
    """The recorded backward pass of a call, from which some arriving gradients can be left out."""

    def __init__(
        self, items: Sequence[Item], arriving: Sequence[Value], results: Sequence[Value | None], sums: Iterable[Value]
    ) -> None:
        self._items, self._arriving, self._results = list(items), list(arriving), list(results)
        self._sums = {each.number for each in sums}
        """The gradients that were added to others."""
        self._known: dict[frozenset[int], Callable[..., Any] | None] = {}

    def without(self, absent: frozenset[int], parameters: Sequence[str]) -> Callable[..., Any] | None:
        """The backward part where the gradients at some positions are absent, as a function of the same `parameters`.

        None: there is none, and zeros have to stand for them.
        """
        if absent not in self._known:
            self._known[absent] = self._made(absent, parameters)
        return self._known[absent]

    def _made(self, absent: frozenset[int], parameters: Sequence[str]) -> Callable[..., Any] | None:
        left = _Left([self._arriving[each] for each in absent], self._arriving, self._sums)
        if not all(map(left.takes, self._items)):
            return None
        results = [None if each is None else left.found(each) for each in self._results]
        wanted = [each for each in results if each is not None]
        items = improved(left.items, wanted)
        made = {*parameters, *left.zeros}
        for item in items:
            if any(f"v{each.number}" not in made for each in uses(item)):
                return None  # the forward part does not keep it
            made.update([f"v{each.number}" for each in values_in(getattr(item, "results", ()))])
        if any(f"v{each.number}" not in made for each in wanted):
            return None
        source = Source()
        for name, example in left.zeros.items():
            kind, shape = example._kind, tuple(example._array.shape)
            source.lines.append(
                f"{name} = {source.constant(kind.backend.zeros)}({shape}, {source.constant(kind.dtype.numpy)})"
            )
        source.items(items, wanted)
        source.parts.clear()
        texts = ["None" if each is None else f"v{each.number}" for each in results]
        source.lines.append(f"return [{', '.join(texts)}]")
        function: Callable[..., Any] = source.function("backward", ", ".join(parameters))
        return function


class _Left:
    """What is left of a backward pass."""

    def __init__(self, absent: Sequence[Value], arriving: Sequence[Value], sums: set[int]) -> None:
        self.items: list[Item] = []
        self.zeros: dict[str, Tensor] = {}
        """Absent gradients that ops need beside others, by name, and what they look like."""
        self._absent: dict[int, Any] = {each.number: None for each in absent}
        """Values that there are not; what they looked like, but for those that arrive."""
        self._depending = {each.number for each in arriving}
        self._instead: dict[int, Value] = {}
        self._sums = sums

    def found(self, value: Value) -> Value | None:
        """The value that stands for another one; None: it is absent."""
        value = self._instead.get(value.number, value)
        return None if value.number in self._absent else value

    def takes(self, item: Item) -> bool:
        """Take an item, or leave it out; False: it is not known what becomes of it."""
        if not isinstance(item, Call):
            return False
        item = replace(item, args=tuple([self._renamed(each) for each in item.args]))
        made = list(values_in(item.results))
        depending = [each for each in uses(item) if each.number in self._depending]
        absent = [each for each in depending if each.number in self._absent]
        if depending:
            self._depending.update([each.number for each in made])
        if item.op.writes:
            return False  # whoever shares the memory sees it too: values are not all that connects the ops
        if absent and len(absent) == len(depending):
            self._absent.update(zip([each.number for each in made], _examples(item.made), strict=True))
        elif absent and (other := self._other(item)) is not None:
            return self._stands_for(item, other)
        else:
            for each in absent:
                example = self._absent[each.number]
                if example is not None:
                    self.zeros[f"v{each.number}"] = example
            self.items.append(item)
        return True

    def _stands_for(self, total: Call, other: Value) -> bool:
        """Let a gradient stand for the sum of two, in the layout of the sum, which further ops may depend on."""
        position = total.args.index(other)
        one, example = total.made._array, total.examples[position]
        if one.strides == example._array.strides:
            self._instead[total.results.number] = other
            return True
        if not one.flags.c_contiguous:
            return False
        args, examples = (other, contiguous_format), (example, contiguous_format)
        self.items.append(replace(total, op=_clone, args=args, examples=examples))
        return True

    def _other(self, item: Call) -> Value | None:
        """The gradient that is there, of two that were added."""
        values = [each for each in item.args if type(each) is Value]
        if item.op.name != "add" or len(values) != 2 or self._sums.isdisjoint([each.number for each in values]):
            return None
        return next((each for each in values if each.number not in self._absent), None)

    def _renamed(self, tree: Any) -> Any:
        if type(tree) is Value:
            return self._instead.get(tree.number, tree)
        if type(tree) in (list, tuple):
            return type(tree)([self._renamed(each) for each in tree])
        return tree


def _examples(made: Any) -> list[Tensor]:
    """The tensors among results, in the order of their values."""
    if isinstance(made, Tensor):
        return [made]
    return [found for each in made for found in _examples(each)] if type(made) in (list, tuple) else []
