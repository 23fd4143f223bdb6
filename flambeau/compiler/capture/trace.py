"""Tracing: the ops that a model runs on given inputs, with the module and the line that each comes from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._core.arrays.lazy_signs import content
from ..._core.backend import to_host
from ..._core.process.caller import Place, calling_place, describe_place
from ..._core.tensor import Tensor
from ..._dispatch.composite import Composite
from ..._dispatch.factory import constant
from ..._dispatch.op import Op
from ...autograd.grad_mode import no_grad
from ..program.items import Value
from .operators import WholeCall
from .values import ValueRecorder


class Call(NamedTuple):
    """One op that ran, with a `Value` in the place of each tensor."""

    op: Any
    """The op, or what says which operator a whole call was."""
    args: tuple[Any, ...]
    results: Any
    scope: tuple[str, ...]
    """The names of the modules that were running, from the outside in."""
    place: Place | None
    """The line of the user's program."""

    def where(self) -> str:
        """Module and line, for an error."""
        module = f" in module {self.scope[-1]}" if self.scope else ""
        line = describe_place(self.place) if self.place else ""
        return f"{module}{f', {line}' if line else ''}"


_INDEXING = {"index", "index_put"}
"""Ops whose positions are tensors in the trace and arrays for the kernel."""


class Trace(ValueRecorder):
    """Runs ops as usual and writes them down; composite ops that `keeps` does not want are taken apart.

    What a call writes into a tensor that was there before is undone at the end: tracing leaves the model as it was.
    """

    follows_positions = True
    keeps_data = True

    def __init__(self, keeps: Callable[[str], bool]) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.outside: dict[int, Tensor] = {}
        """Tensors that were there before, by number: parameters, buffers, inputs, constants."""
        self.shapes: list[tuple[int, ...]] = []
        self.scope: tuple[str, ...] = ()
        self.looked_at: list[tuple[Op, Place | None]] = []
        """Where Python looked at elements that depend on the inputs."""
        self._keeps = keeps
        self._is_within = False
        """Whether a call runs that is written down as a whole."""
        self._varying: set[int] = set()
        """The numbers of the inputs, and of what was computed from them."""
        self._arrays: list[Any] = []
        """What has numbers, kept alive: no other array gets its address."""
        self._before: dict[int, tuple[Tensor, Any]] = {}

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        if self._is_within:
            for position in op.writes:
                self._remember(args[position])
            return op(*args)
        if isinstance(op, Composite) and not self._keeps(op.name):
            with self:
                return op.decomposition(*args)
        noted = self._noted(op, tuple(args))
        if op is constant:  # later ops may write into the array
            noted = (np.array(to_host(args[0])), args[1])
        elif op.name in _INDEXING:
            args = (args[0], [each._array if isinstance(each, Tensor) else each for each in args[1]], *args[2:])
        for position in op.writes:
            self._remember(args[position])
        results = op(*args)
        self._add(op, noted, results)
        return results

    def run_whole(self, op: Any, args: Sequence[Any], run: Callable[[], Any]) -> Any:
        """Run something and write it down as one call, out of sight what it does; `op` says what it is."""
        if self._is_within:
            return run()
        noted = self._noted(op, tuple(args))
        self._is_within = True
        try:
            results = run()
        finally:
            self._is_within = False
        self._add(op, noted, results)
        return results

    def run_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any]) -> Any:
        """Write an operator of the user's own down as a call of it."""
        positional = [each for each in func._schema.arguments if not each.kwarg_only][: len(args)]
        given = list(zip(positional, args, strict=True))
        while given and given[-1][0].is_left_out(given[-1][1]):
            given.pop()
        by_name = [each for each in func._schema.arguments if each.name in kwargs]
        named = [(each, kwargs[each.name]) for each in by_name if not each.is_left_out(kwargs[each.name])]
        writes = []
        for number, (argument, value) in enumerate([*given, *named]):
            if argument.is_write and isinstance(value, Tensor):
                self._remember(value)
                writes.append(number)
        whole = WholeCall(func, tuple([each.name for each, _ in named]), tuple(writes))
        return self.run_whole(whole, [value for _, value in (*given, *named)], lambda: run(args, kwargs))

    def _add(self, op: Any, noted: tuple[Any, ...], results: Any) -> None:
        made, place = self._made(results), calling_place()
        self.calls.append(Call(op, noted, made, self.scope, place))
        if not self._varying.isdisjoint(_numbers_in(noted)):
            self._varying.update(_numbers_in(made), *[_numbers_in(noted[position]) for position in op.writes])
            if op.reads:
                self.looked_at.append((op, place))

    def give(self, tensor: Tensor) -> None:
        """Make a tensor an input."""
        self._varying.add(self.number_of(tensor))

    def number_of(self, tensor: Tensor) -> int:
        """The number of a tensor; one that was not seen yet is from outside."""
        return (self.value_of(tensor) or self._given(None, tensor)).number

    def _given(self, op: Any, tensor: Tensor) -> Value:
        value = self.new_value(tensor)
        self.outside[value.number] = tensor
        return value

    def original(self, number: int) -> Any:
        """The array of a tensor from outside, as it was before the run."""
        tensor = self.outside[number]
        saved = self._before.get(id(tensor._array))
        return np.array(to_host(content(tensor))) if saved is None else saved[1]

    def undo(self) -> None:
        """Put back what the run has written into tensors that were there before."""
        for tensor, array in self._before.values():
            tensor._array[...] = array

    def _remember(self, written: Any) -> None:
        base = written if written._view is None else written._view.base
        if id(base._array) not in self._before:
            self._before[id(base._array)] = (base, np.array(to_host(base._array)))

    def _held(self, tensor: Tensor) -> Tensor:
        """The tensor itself, which may get another array."""
        self._arrays.append(tensor._array)
        self.shapes.append(tuple(tensor._array.shape))
        return tensor


def _numbers_in(noted: Any) -> Iterator[int]:
    """The numbers of the tensors in a nest."""
    if isinstance(noted, Value):
        yield noted.number
    elif type(noted) in (list, tuple):
        for each in noted:
            yield from _numbers_in(each)


class Run(NamedTuple):
    """A traced call of a model."""

    trace: Trace
    outputs: Any


def trace_call(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], trace: Trace, inputs: Sequence[Tensor]
) -> Run:  # fmt: skip
    """Run `model(*args, **kwargs)` and write down what it does; neither the model nor the inputs change by it."""
    for each in inputs:
        trace.give(each)
    with contextlib.ExitStack() as stack:
        stack.callback(trace.undo)
        stack.enter_context(_scopes(model, trace))
        stack.enter_context(no_grad())
        with trace:
            outputs = model(*args, **kwargs)
    return Run(trace, outputs)


@contextlib.contextmanager
def _scopes(model: Any, trace: Trace) -> Iterator[None]:
    """Let the trace know which module is running."""
    handles = []
    named = list(model.named_modules()) if hasattr(model, "named_modules") else []

    def watch(name: str, module: Any) -> None:
        def enter(*ignored: Any) -> None:
            trace.scope = (*trace.scope, name)

        def leave(*ignored: Any) -> None:
            trace.scope = trace.scope[:-1]

        handles.append(module.register_forward_pre_hook(enter, prepend=True))
        handles.append(module.register_forward_hook(leave, always_call=True))

    for name, module in named:
        if name:
            watch(name, module)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
