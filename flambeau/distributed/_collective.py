"""Collectives as ops: they write into tensors like any other op that does, and captures and profilers see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.backend import to_host
from .._core.modes import THREAD
from .._core.tensor import Tensor, wrap
from .._dispatch.interpreter import interpret
from .._dispatch.op import Op
from ._engines import Pending
from ._work import Work

Start = Callable[[list[Any]], Pending]
"""Starts a collective on flat arrays of the host."""


class Call:
    """One call of a collective: how it starts, how many of its tensors it writes, and what is under way then."""

    __slots__ = ("pending", "start", "stores", "written")

    def __init__(self, start: Start, written: int) -> None:
        self.start = start
        self.written = written
        self.pending: Pending | None = None
        self.stores: list[Callable[[], None]] = []
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
    arrays = [_flat(tensor, index < call.written, call.stores) for index, tensor in enumerate(tensors)]
    call.pending = call.start(arrays)
    for tensor in tensors[: call.written]:
        tensor._changed()


def _flat(tensor: Tensor, is_written: bool, stores: list[Callable[[], None]]) -> Any:
    """The elements in a flat array of the host: the tensor's own memory, if it is in one piece."""
    array = tensor._array
    kind = tensor._kind
    if type(array) is np.ndarray and array.flags.c_contiguous and kind.plain is kind:
        return array.reshape(-1)
    if tensor.is_sparse:
        raise RuntimeError("collectives on sparse tensors are not supported: call to_dense() first")
    plain = tensor.detach().resolve_conj().resolve_neg()
    copied = np.array(to_host(plain._array), order="C").reshape(-1)
    if is_written:

        def store() -> None:
            host = wrap(copied.reshape(tensor.shape), tensor.cpu().device)
            tensor.data.copy_(host)

        stores.append(store)
    return copied


OPS = {
    name: Collective(name)
    for name in (
        "all_reduce", "reduce_to_one", "broadcast_from_one", "all_gather", "gather_to_one", "scatter_from_one",
        "reduce_scatter", "all_to_all", "send", "receive",
    )
}  # fmt: skip


def run(name: str, tensors: Sequence[Tensor], start: Start, written: int, async_op: bool, result: Any = None) -> Any:
    """Run the op `name`; a `Work` if it is asynchronous, else wait for it."""
    work = started(name, tensors, start, written, result)
    if async_op:
        work.attend()
        return work
    work.wait()
    return None


def started(name: str, tensors: Sequence[Tensor], start: Start, written: int, result: Any = None) -> Work:
    """Start the op `name`. Whoever calls waits for it soon, or lets it be attended to."""
    call = Call(start, written)
    OPS[name](list(tensors), call)
    return Work(
        [call.pending] if call.pending is not None else [],
        list(tensors[:written]) if result is None else result,
        call.store if call.stores else None,
    )
