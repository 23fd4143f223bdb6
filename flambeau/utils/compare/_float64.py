"""A run with every op repeated in float64: what rounding has done to each result."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.backend import to_host
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ._digest import digest, relative_difference, summary
from ._evidence import in_float64, is_float, unwatched
from ._judge import JUMP, ROUNDING, Difference, Verdict, epsilon_of
from ._recorder import Recorder, _tensors
from ._trace import Trace


class Float64Recorder(Recorder):
    """Records the run, and beside it what each op makes in float64 of what the ops before it made in float64.

    Random numbers, integers and decisions are the run's own.
    """

    def __init__(self, title: str = "", *, steps: int | None = None) -> None:
        super().__init__(title, steps=steps)
        self.reference = Trace(f"{title} in float64")
        self._wide: dict[int, tuple[Any, Tensor]] = {}
        """By the id of an array: a weak reference to it, and the tensor in float64 beside it."""

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        if self._is_over:
            return
        written = [each for position in op.writes for each in _tensors((args[position],))]
        made = [*written, *(each for each in _tensors((result,)) if all(each is not other for other in written))]
        wide = self._repeated(op, args)
        if wide is None or len(wide) != len(made):
            wide = [None] * len(made)
        for tensor, beside in zip(made, wide, strict=True):
            self._remember(tensor, beside)
        super().ran(op, args, result, start, end)
        self._follow(made)

    def _repeated(self, op: Op, args: Sequence[Any]) -> list[Tensor | None] | None:
        """The results in float64; None: they are what the op itself made."""
        if op.draws or not any(is_float(each._array) for each in _tensors(args) if hasattr(each, "_array")):
            return None
        return in_float64(op, args, self._beside)

    def _beside(self, tensor: Tensor) -> Tensor:
        known = self._wide.get(id(tensor._array))
        if known is not None and known[0]() is tensor._array:
            return known[1]
        return self._remember(tensor, None)

    def _remember(self, tensor: Tensor, beside: Tensor | None) -> Tensor:
        from ... import from_numpy

        array = tensor._array
        if beside is None or beside.shape != tensor.shape or not is_float(array):
            host = to_host(array)
            wide = np.complex128 if host.dtype.kind == "c" else np.float64
            with unwatched():
                beside = from_numpy(host.astype(wide) if is_float(host) else host.copy())
        with contextlib.suppress(TypeError):  # an array of a class without weak references is made wide each time
            self._wide[id(array)] = weakref.ref(array), beside
        return beside

    def mark(self, name: str, module: str, arguments: str, tensors: Sequence[Tensor]) -> None:
        if not self._is_over:
            super().mark(name, module, arguments, tensors)
            self._follow(tensors)

    def _follow(self, tensors: Sequence[Tensor]) -> None:
        """Add to the other trace what was added to this one."""
        entry = self.trace.entries[-1]
        values = []
        for tensor, value in zip(tensors, entry.outputs, strict=True):
            if np.isnan(self.trace.summaries[value]).all():  # memory that nobody wrote yet
                values.append(self.reference.add_value(0, self.trace.summaries[value], self.trace.kinds[value], -1))
                continue
            array = self._beside(tensor)._array
            number = len(self.reference.entries) if self.trace.producers[value] >= 0 else -1
            values.append(self.reference.add_value(digest(array), summary(array), self.trace.kinds[value], number))
        self.reference.entries.append(entry._replace(outputs=tuple(values)))

    def verdict(self) -> Verdict:
        """Where rounding becomes a difference."""
        return verdict_of(self.trace, self.reference)


def verdict_of(trace: Trace, reference: Trace) -> Verdict:
    """The first op of a run whose error is many times that of what it read; `reference` is the run in float64."""
    verdict = Verdict([(number, number) for number in range(len(trace))])
    largest: dict[int, float] = {}
    for number, entry in enumerate(trace.entries):
        sizes = [
            relative_difference(trace.summaries[value], reference.summaries[wide])
            for value, wide in zip(entry.outputs, reference.entries[number].outputs, strict=True)
        ]
        size = max(sizes, default=0.0)
        verdict.sizes.append(size)
        largest.update(zip(entry.outputs, sizes, strict=True))
        if not size or entry.is_mark:
            continue
        before = max((largest.get(each, 0.0) for each in entry.inputs), default=0.0)
        unit = max(map(epsilon_of, trace.kinds_of(entry.outputs)))
        if verdict.first is None and size > ROUNDING * unit and size > JUMP * before:
            reason = f"it makes a relative error of {size:.1e} out of {before:.1e}"
            verdict.first = Difference("result", number, number, reason, size, (size, 0.0))
        else:
            verdict.rounded.append(number)
    return verdict
