"""Ops that only backends have: one kernel in place of several ops, or without what a derivative would need.

    _product_by_rows = BackendOp("product_by_rows")

    def linear(input, weight):
        found = _product_by_rows(input, weight)
        return matmul(input, weight.t()) if found is None else found

A backend takes part by pushing a lowering under the op's name. To profilers these are ops like all others, so that a
run on which somebody looks has the kernels of one on which nobody does. Other interpreters do not see them: they are
shown the ops that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from .._core.modes import THREAD
from .._core.tensor import PLAIN_TYPES, Tensor
from .call.results import any_needs_gradient, fresh
from .op import Op


class BackendOp(Op):
    """An op without a reference kernel. Its results are outside the graph; None: the backend does not have it.

    A call of which a derivative is wanted is refused too, unless the caller `records` it. `narrow`: the backend reads
    types of numbers that kernels elsewhere have to widen. `elsewhere` takes the arrays where a backend has no lowering.
    """

    def __init__(
        self, name: str, *, records: bool = False, narrow: bool = False, elsewhere: Callable[..., Any] | None = None
    ) -> None:
        self.enter(name)
        self.kernel = _not_there if elsewhere is None else elsewhere
        self.parameters = ()
        self._records, self._narrow = records, narrow

    def __call__(self, *args: Any) -> Any:
        modes = THREAD.modes
        watcher = modes.watcher
        if not modes.plain and watcher is None:
            return None
        first = known = None
        arrays = []
        for each in args:
            if type(each) in PLAIN_TYPES:
                kind = each._kind
                if kind is not known:
                    if kind.dataless if self._narrow else kind.indirect:
                        return None
                    if known is None:
                        first = each
                    elif kind.device is not known.device:
                        return None
                    known = kind
                each = each._array
            elif isinstance(each, Tensor):
                return None
            arrays.append(each)
        assert first is not None, f"{self.name} needs a tensor"
        if modes.grad and not self._records and any_needs_gradient([each for each in args if isinstance(each, Tensor)]):
            return None
        start = 0 if watcher is None else perf_counter_ns()
        kind = first._kind
        done = (kind.tries.get(self) or kind.backend.first_try(self))(*arrays)
        if done is None:
            return None
        result = tuple([fresh(each, first) for each in done]) if type(done) is tuple else fresh(done, first)
        if watcher is not None:
            watcher.ran(self, args, result, start, perf_counter_ns())
        return result


def _not_there(*args: Any) -> None:
    """The kernel of an op that a backend has not."""
