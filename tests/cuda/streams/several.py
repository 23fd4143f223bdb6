"""Programs for several devices; none races. On one device nothing of this file is in the list."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from .programs import Program, classes, cuda, network, numbers, parameters, step

SEVERAL: dict[str, Program] = {}
"""By name; two devices are needed."""


def program(function: Program) -> Program:
    """Take a program into the list."""
    SEVERAL[function.__name__] = function
    return function


@program
def copies_between_devices() -> list[Any]:
    found = []
    x = numbers(16, device="cuda:0")
    for number in range(4):
        y = (x * number).to("cuda:1") + 1
        x = y.to("cuda:0").tanh()
        found.append(x)
    return found


@program
def copies_between_devices_in_streams() -> list[Any]:
    """A copy is ordered with the streams in use on both devices."""
    one, other = cuda.Stream(0), cuda.Stream(1)
    one.wait_stream(cuda.current_stream(0))
    found = []
    for number in range(4):
        with cuda.stream(other):
            x = numbers(16, start=number, device="cuda:1") * 2
            with cuda.stream(one):
                y = x.to("cuda:0", non_blocking=True) + 1
                x.fill_(number)
                found.append(y)
    cuda.current_stream(0).wait_stream(one)
    return [each * 1 for each in found]


@program
def a_copy_into_memory_in_use() -> list[Any]:
    """A copy to another device comes after what reads the target there."""
    target, found = numbers(64, device="cuda:1"), []
    for number in range(4):
        source = numbers(64, start=number, device="cuda:0").exp()
        y = target.square()
        target.copy_(source)
        source.zero_()
        found += [y, target * 2]
    return found


@program
def one_pinned_buffer_for_two_devices() -> list[Any]:
    """Pinned memory that two devices copy from is free again when both have."""
    found = []
    for number in range(6):
        buffer = numbers(64, start=number).pin_memory()
        found += [buffer.to(f"cuda:{device}", non_blocking=True).square() for device in (0, 1)]
        del buffer
    return found


@program
def events_between_devices() -> list[Any]:
    found = []
    for number in range(3):
        with cuda.device(1):
            x = numbers(16, start=number, device="cuda:1").exp()
            ready = cuda.current_stream().record_event()
        side = cuda.Stream(0)
        with cuda.stream(side):
            side.wait_event(ready)
            y = x.to("cuda:0") * 2
        cuda.current_stream(0).wait_stream(side)
        found.append(y * 1)
        y.record_stream(cuda.current_stream(0))
    return found


@program
def memory_of_another_device_is_recorded() -> list[Any]:
    """`record_stream` of a tensor on another device than the one in use, and its reuse there."""
    found = []
    side = cuda.Stream(1)
    for number in range(5):
        x = numbers(64, start=number, device="cuda:1")
        side.wait_stream(cuda.current_stream(1))
        with cuda.stream(side):
            y = x.square()
        x.record_stream(side)
        del x
        cuda.current_stream(1).wait_stream(side)
        found.append(y * 1)
        y.record_stream(cuda.current_stream(1))
    return found


@program
def data_parallel() -> list[Any]:
    net: Any = nn.DataParallel(network("cuda:0"), device_ids=[0, 1])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return [*[step(net, optimizer, number, "cuda:0") for number in range(2)], *parameters(net)]


@program
def replicas_by_hand() -> list[Any]:
    net = network("cuda:0")
    inputs = nn.parallel.scatter(numbers(6, 6, device="cuda:0"), [0, 1])
    replicas = nn.parallel.replicate(net, [0, 1])
    outputs = nn.parallel.parallel_apply(replicas, [(each,) for each in inputs])
    result = nn.parallel.gather(outputs, 0)
    result.square().sum().backward()
    return [result.detach(), *[each.grad for each in net.parameters()]]


@program
def communication() -> list[Any]:
    x = numbers(8, 3, device="cuda:0")
    copies = cuda.comm.broadcast(x * 2, [0, 1])
    total = cuda.comm.reduce_add([each + 1 for each in copies], 1)
    parts = cuda.comm.scatter(total, [0, 1])
    whole = cuda.comm.gather([each.exp() for each in parts], destination=0)
    sums = cuda.comm.reduce_add_coalesced([[whole, x], [each.to("cuda:1") for each in (whole, x)]], 0)
    return [total, whole, *sums]


def last_layer() -> Any:
    """A layer for what `network` gives, on the second device."""
    made: Any = nn.Linear(3, 2)
    with torch.no_grad():
        made.weight.copy_(numbers(2, 3))
        made.bias.zero_()
    return made.to("cuda:1")


@program
def layers_on_two_devices() -> list[Any]:
    first, second = network("cuda:0"), last_layer()
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    losses = []
    for number in range(3):
        loss = second(first(numbers(4, 6, start=number, device="cuda:0")).to("cuda:1")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *parameters(first), *parameters(second)]


@program
def a_pipeline_of_micro_batches() -> list[Any]:
    """While the second device works on a micro-batch, the first one works on the next, each in a side stream."""
    first, second = network("cuda:0"), last_layer()
    streams = [cuda.Stream(0), cuda.Stream(1)]
    for number, stream in enumerate(streams):
        stream.wait_stream(cuda.current_stream(number))
    outputs = []
    for part in numbers(8, 6, device="cpu").chunk(4):
        with cuda.stream(streams[0]):
            hidden = first(part.to("cuda:0"))
            done = streams[0].record_event()
        with cuda.stream(streams[1]):
            streams[1].wait_event(done)
            with cuda.stream(streams[0]):
                moved = hidden.to("cuda:1")
            streams[1].wait_stream(streams[0])
            streams[1].wait_stream(cuda.current_stream(1))
            outputs.append(second(moved))
    for number, stream in enumerate(streams):
        cuda.current_stream(number).wait_stream(stream)
    with cuda.device(1):
        result = torch.cat(outputs)
        result.square().sum().backward()
    return [result.detach(), *[each.grad for each in (*first.parameters(), *second.parameters())]]


@program
def graphs_of_two_devices() -> list[Any]:
    found, graphs = [], []
    for device in (0, 1):
        with cuda.device(device):
            x, graph = numbers(16, device=f"cuda:{device}"), cuda.CUDAGraph()
            with cuda.graph(graph):
                y = (x * 2).exp()
            graphs.append((x, graph, y))
    for number in range(3):
        for x, graph, y in graphs:
            x.copy_(numbers(16, start=number))
            graph.replay()
            found.append(y.clone())
    return found


@program
def losses_of_two_devices() -> list[Any]:
    """Parts of a batch on two devices with shared parameters: gradients meet on the first one."""
    net = network("cuda:0")
    weights = list(net.parameters())
    total: Any = 0
    for device in ("cuda:0", "cuda:1"):
        there = [each.to(device) for each in weights]
        x = numbers(4, 6, device=device)
        hidden = torch.tanh(F.linear(x, there[0], there[1]))
        total = total + F.cross_entropy(F.linear(hidden, there[2], there[3]), classes(4, device)).to("cuda:0")
    total.backward()
    return [total.detach(), *[each.grad for each in weights]]
