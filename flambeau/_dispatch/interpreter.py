"""Interpreters: what runs ops in place of their kernels.

    class Counter(Interpreter):
        def run(self, op, args):
            self.count[op.name] += 1
            return op(*args)

    with Counter():
        ...

An interpreter is asked for every op of its thread while it is entered, those of backward passes included. It sees
tensors, and returns the op's results. They are recorded for autograd outside of it: inside, nothing is. An op that it
calls goes to the interpreter that was entered before it, and in the end to the kernel.

A `Watcher` changes nothing: it hears of the ops that ran. Where it is alone, they run by the short paths, autograd
included, as if nobody looked on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter_ns
from typing import Any, TypeVar, cast

from .._core.modes import DIRECT, NONE_DIRECT, THREAD, Modes
from .._core.process.interrupts import uninterrupted
from .op import Op

Method = TypeVar("Method", bound=Callable[..., Any])


class Interpreter:
    """The base of all interpreters; as it stands it runs every op as usual."""

    records_inside = False
    """Whether autograd follows what `run` computes with, and not what it returns: a transform of tensors that wraps
    others."""
    follows_positions = False
    """Whether indices are given to it as tensors, so that it sees where positions come from."""

    only_watches = False
    """Whether it is a `Watcher`."""

    repeats = False
    """Whether it runs ops as they are and writes them down: they have to be those of a run on which nobody looks on."""

    keeps_data = False
    """Whether it writes down the numbers that tensors are made of, also of tensors that have no data."""

    sees_checks = False
    """Whether checks of elements, which have no results, are ops to it: what it runs again must refuse the same."""

    takes_operators_whole = False
    """Whether an operator of the user's own is one op to it, whatever its Python does: that runs in every call."""

    writes_operators_whole = False
    """Whether an operator of the user's own stands in what it writes down as a call of that operator."""

    run_outside: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None = None
    """Runs Python whose state is its own, such as an optimizer's step, out of sight; None: it runs as it stands."""

    def aside(self) -> AbstractContextManager[None]:
        """A context in which neither ops nor Python count: what runs in it is no part of the call."""
        return nullcontext()

    def misses(self, what: str) -> None:
        """Hear of something that happens beside the ops."""

    def reads_offset(self, tensor: Any) -> None:
        """Hear that Python asks where in its storage a tensor begins."""

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        """The results of `op` on `args`: a tensor or a tuple of them."""
        return op(*args)

    def run_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any]) -> Any:
        """The results of an operator of the user's own, which `run` computes; for `writes_operators_whole`."""
        return run(args, kwargs)

    @uninterrupted
    def __enter__(self) -> Any:
        modes = THREAD.modes
        modes.interpreters = (*modes.interpreters, self)
        modes.refresh()
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        assert modes.interpreters[-1] is self, "interpreters are left in the order opposite to that of entering"
        modes.interpreters = modes.interpreters[:-1]
        modes.refresh()


class Watcher(Interpreter):
    """An interpreter that runs every op as it is, and hears of it afterwards."""

    only_watches = True

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        """Hear that a call is over; the times are those of `perf_counter_ns`."""
        raise NotImplementedError

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        start = perf_counter_ns()
        result = op(*args)
        self.ran(op, args, result, start, perf_counter_ns())
        return result


def watched(op: Op, args: Sequence[Any], modes: Modes, short: Callable[..., Any] | None = None) -> Any:
    """A call on which `modes.watcher` alone looks on: in plain modes, with what autograd records.

    `short` is what runs the op in such modes, where that is not the op itself.
    """
    watcher = modes.watcher
    stack, modes.interpreters = modes.interpreters, ()
    modes.watcher = None
    modes.plain, modes.direct = True, DIRECT
    try:
        start = perf_counter_ns()
        result = (short or op)(*args)
        end = perf_counter_ns()
    finally:
        if modes.plain:
            modes.interpreters, modes.watcher, modes.plain, modes.direct = stack, watcher, False, NONE_DIRECT
        else:  # another thread has meanwhile changed what holds for all
            modes.interpreters = (*modes.interpreters, watcher)
            modes.refresh()
    watcher.ran(op, args, result, start, end)
    return result


def interpret(op: Op, args: Sequence[Any], modes: Modes) -> Any:
    """What the innermost interpreter makes of a call; while it runs, the ones outside of it are in charge."""
    if modes.watcher is not None:
        return watched(op, args, modes)
    stack, grad, level = modes.interpreters, modes.grad, modes.forward_level
    below = stack[:-1]
    try:
        modes.interpreters = below
        if not stack[-1].records_inside:
            modes.grad = False  # recording, and moving tangents along, is done outside, with what it returns
            modes.forward_level = -1
        modes.refresh()
        return stack[-1].run(op, args)
    finally:
        # The one below all others may have come or gone meanwhile.
        modes.interpreters = stack if modes.interpreters is below else (*modes.interpreters, stack[-1])
        modes.grad, modes.forward_level = grad, level
        modes.refresh()


def at_level(op: Op, args: Sequence[Any], tensor: Any) -> Any:
    """A call that was given a tensor of a level which nobody has entered: one that is distributed over processes."""
    with tensor.level:
        return op(*args)


RUN_OUTSIDE: list[type] = []
"""Classes whose objects are Python state that runs outside: optimizers, schedulers."""


def runner_outside() -> Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None:
    """What the innermost interpreter wants Python with a state of its own to be run by; None: it runs as it stands."""
    stack = THREAD.modes.interpreters
    return stack[-1].run_outside if stack else None


def runs_outside(method: Method) -> Method:
    """Mark a method that changes nothing but the Python state of its object: see `Interpreter.run_outside`."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        run = runner_outside()
        return method(*args, **kwargs) if run is None else run(call, args, kwargs)

    return cast(Method, call)
