"""Collectives as ops: they write into tensors like any other op that does, and captures and profilers see them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.backend import to_host
from .._core.device import CPU
from .._core.modes import THREAD
from .._core.tensor import Tensor, wrap
from .._dispatch.changes.history import end_change
from .._dispatch.interpreter import interpret
from .._dispatch.op import Op
from ._engines import Engine, Pending
from ._work import Work

Start = Callable[[Engine, list[Any]], Pending]
"""Starts a collective on flat arrays."""


class Call:
    """One call of a collective: how it starts, how many of its tensors it writes, and what is under way then."""

    __slots__ = ("engine", "pending", "start", "stores", "written")

    def __init__(self, engine: Engine, start: Start, written: int) -> None:
        self.engine = engine
        self.start = start
        self.written = written
        self.pending: Pending | None = None
        self.stores: list[Callable[[], object]] = []
        """What is to be done when it is over, where arrays could not be given as they are."""

    def store(self) -> None:
        """Put into tensors what was received in copies."""
        for each in self.stores:
            each()


class Collective(Op):
    """An op whose tensors, some of which it writes, are a list."""

    parameters = ("tensors", "call")
    list_position = 0
    writes = (0,)

    def __init__(self, name: str) -> None:
        self.enter(name)
        self.kernel = _start
        self.__doc__ = f"The collective {name}."

    def __call__(self, tensors: Sequence[Tensor], call: Call) -> None:
        modes = THREAD.modes
        if modes.interpreters:
            interpret(self, (tensors, call), modes)
            return
        if any(tensor._kind.dataless for tensor in tensors):
            return
        _start(tensors, call)


def _start(tensors: Sequence[Tensor], call: Call) -> None:
    arrays = [_flat(tensor, index < call.written, call) for index, tensor in enumerate(tensors)]
    call.pending = call.start(call.engine, arrays)
    for tensor in tensors[: call.written]:
        end_change(tensor)


def _flat(tensor: Tensor, is_written: bool, call: Call) -> Any:
    """The elements in a flat array: the tensor's own memory, if it is in one piece and the engine works there."""
    array = tensor._array
    kind = tensor._kind
    if call.engine.takes(array) and array.flags.c_contiguous and kind.plain is kind:
        return array.reshape(-1)
    if tensor.is_sparse:
        raise RuntimeError("collectives on sparse tensors are not supported: call to_dense() first")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if call.engine.takes(array):
        copy = plain.contiguous() if plain._array is not array or not array.flags.c_contiguous else plain.clone()
        copied = copy._array.reshape(-1)
    else:
        copied = np.array(to_host(plain._array), order="C").reshape(-1)
        copy = wrap(copied.reshape(tensor.shape), CPU)
    if is_written:
        call.stores.append(functools.partial(tensor.data.copy_, copy))
    return copied


OPS = {
    name: Collective(name)
    for name in (
        "all_reduce", "reduce_to_one", "broadcast_from_one", "all_gather", "gather_to_one", "scatter_from_one",
        "reduce_scatter", "all_to_all", "send", "receive",
    )
}  # fmt: skip


def run(
    name: str,
    engine: Engine,
    tensors: Sequence[Tensor],
    start: Start,
    written: int,
    async_op: bool,
    result: Any = None,
) -> Any:
    """Run the op `name`; a `Work` if it is asynchronous, else wait for it."""
    work = started(name, engine, tensors, start, written, result)
    if async_op:
        work.attend()
        return work
    work.wait()
    return None


def begun(name: str, engine: Engine, tensors: Sequence[Tensor], start: Start, written: int, result: Any = None) -> Work:
    """Start the op `name` beside other work of this thread: it goes on when `engine.progress()` is called, where that
    is enough, and otherwise by itself.
    """
    work = started(name, engine, tensors, start, written, result)
    if not engine.progress():
        work.attend()
    return work


def started(
    name: str, engine: Engine, tensors: Sequence[Tensor], start: Start, written: int, result: Any = None
) -> Work:
    """Start the op `name`. Whoever calls waits for it soon, or lets it be attended to."""
    call = Call(engine, start, written)
    OPS[name](list(tensors), call)
    if THREAD.modes.interpreters and call.pending is not None:
        from ..profiler._recorder import recorders

        nbytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        for recorder in recorders():
            recorder.under_way.append((f"{name}, {nbytes:,} bytes", call.pending))
    return Work(
        [call.pending] if call.pending is not None else [],
        list(tensors[:written]) if result is None else result,
        call.store if call.stores else None,
    )
