"""Races that are planted: programs that forget to wait, and a backend from which a wait is taken out.

`USERS` are programs, each of which lacks one line. `BACKEND` are right programs with what is patched in the backend.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import flambeau as torch
from flambeau._backends.cuda.memory.host import HostPool
from flambeau._backends.cuda.memory.pool import Pool
from flambeau._backends.cuda.memory.supplier import RuntimeSupplier
from flambeau._backends.cuda.runtime.backward_streams import StreamUses

from . import programs, several
from .programs import Program, cuda, network, numbers

USERS: dict[str, Program] = {}


def planted(function: Program) -> Program:
    """Take a program into the list."""
    USERS[function.__name__] = function
    return function


@planted
def no_wait_stream_before_a_side_stream() -> list[Any]:
    side = cuda.Stream()
    x = numbers(32, device="cuda").exp()
    with cuda.stream(side):
        y = x * 2
    cuda.current_stream().wait_stream(side)
    return [y * 1]


@planted
def no_wait_stream_after_a_side_stream() -> list[Any]:
    side = cuda.Stream()
    x = numbers(32, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x.exp()
    return [y * 2]


@planted
def no_record_stream() -> list[Any]:
    side, found = cuda.Stream(), []
    for number in range(4):
        x = numbers(64, start=number, device="cuda")
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            found.append(x.exp())
        del x  # its memory is used again by the next round, in the other stream
    cuda.current_stream().wait_stream(side)
    return [each * 1 for each in found]


@planted
def an_event_recorded_too_early() -> list[Any]:
    side, ready = cuda.Stream(), cuda.Event()
    x = numbers(32, device="cuda")
    ready.record()
    x.mul_(2)
    with cuda.stream(side):
        side.wait_event(ready)
        y = x + 1
    cuda.current_stream().wait_stream(side)
    return [y * 1]


@planted
def a_pinned_buffer_changed_too_early() -> list[Any]:
    buffer, found = torch.empty(32).pin_memory(), []
    for number in range(3):
        buffer.copy_(numbers(32, start=number))
        found.append(buffer.to("cuda", non_blocking=True))
    return found


@planted
def a_result_read_before_it_is_there() -> list[Any]:
    y = numbers(32, device="cuda").exp().to("cpu", non_blocking=True)
    return [y.clone()]


@planted
def gradients_used_while_they_are_reduced() -> list[Any]:
    net, comm = network(), cuda.Stream()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def reduce(parameter: Any) -> None:
        comm.wait_stream(cuda.current_stream())
        with cuda.stream(comm):
            parameter.grad.div_(2)

    for each in net.parameters():
        each.register_post_accumulate_grad_hook(reduce)
    net(numbers(5, 6, device="cuda")).square().mean().backward()
    optimizer.step()
    return programs.parameters(net)


@planted
def the_input_of_a_graph_changed_in_another_stream() -> list[Any]:
    x, graph, side = numbers(16, device="cuda"), cuda.CUDAGraph(), cuda.Stream()
    with cuda.graph(graph):
        y = x.exp()
    with cuda.stream(side):
        x.copy_(numbers(16, start=3))
    graph.replay()
    return [y.clone()]


@planted
def a_copy_between_devices_read_in_another_stream() -> list[Any]:
    x = numbers(32, device="cuda:0").exp()
    y = x.to("cuda:1", non_blocking=True)
    side = cuda.Stream(1)
    with cuda.stream(side):
        z = y * 2
    cuda.current_stream(1).wait_stream(side)
    return [z * 1]


@planted
def a_source_changed_while_another_device_copies_it() -> list[Any]:
    x = numbers(32, device="cuda:0")
    side = cuda.Stream(0)
    y = x.to("cuda:1", non_blocking=True)
    with cuda.stream(side):
        x.fill_(7)
    return [y * 1]


def _without_device_waits() -> AbstractContextManager[Any]:
    """The backend's own waits between streams do nothing."""
    from tests.support.out_of_order_runtime import Stream

    return mock.patch.object(Stream, "wait_event")


def _without_users_of_pinned_memory() -> AbstractContextManager[Any]:
    class Nobody(set[Any]):
        def add(self, user: Any) -> None: ...

    def empty(self: HostPool, shape: Any, dtype: Any) -> Any:
        from flambeau._backends.cuda.memory.host import pinned_memory

        found = made(self, shape, dtype)
        memory: Any = pinned_memory(found)
        memory.users = Nobody()
        return found

    made = HostPool.empty
    return mock.patch.object(HostPool, "empty", empty)


def _without_devices_of_pinned_memory() -> AbstractContextManager[Any]:
    """As it was once: the queues of all devices are asked for on the device in use."""
    marked = RuntimeSupplier.mark

    def mark(self: RuntimeSupplier, ordinal: int, stream: int) -> Any:
        return marked(self, self._runtime.getDevice(), stream)

    return mock.patch.object(RuntimeSupplier, "mark", mark)


def _forget(*given: Any) -> None:
    """Do nothing, and keep nothing alive, as a mock would."""


def _join_nothing() -> AbstractContextManager[Any]:
    return mock.patch.object(StreamUses, "join", return_value=lambda: None)


def _leave_nothing() -> AbstractContextManager[Any]:
    joined = StreamUses.join

    def join(self: StreamUses, sequence: Any) -> Callable[[], None]:
        joined(self, sequence)
        return lambda: None

    return mock.patch.object(StreamUses, "join", join)


Patch = Callable[[], AbstractContextManager[Any]]
BACKEND: dict[str, tuple[Program, Patch]] = {
    "copies between devices wait for nobody": (several.a_copy_into_memory_in_use, _without_device_waits),
    "pinned memory forgets who copies": (programs.pinned_memory_freed_at_once, _without_users_of_pinned_memory),
    "pinned memory asks the wrong device": (
        several.one_pinned_buffer_for_two_devices, _without_devices_of_pinned_memory,
    ),
    "record_stream does nothing": (
        programs.memory_freed_while_another_stream_reads_it, lambda: mock.patch.object(Pool, "used_by", _forget),
    ),
    "blocks do not wait for marks": (
        programs.prefetched_batches,
        lambda: mock.patch.object(RuntimeSupplier, "reached", return_value=True),
    ),
    "backward does not wait for the forward pass": (programs.forward_in_a_side_stream, _join_nothing),
    "nobody waits for the end of backward": (programs.work_in_a_side_stream_after_backward, _leave_nothing),
}  # fmt: skip
