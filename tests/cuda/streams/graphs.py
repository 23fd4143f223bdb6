"""Programs with captured graphs and compiled functions; none races."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from .programs import classes, cuda, network, numbers, parameters, program


@program
def a_replayed_graph() -> list[Any]:
    x = numbers(4, 6, device="cuda")
    net, graph = network(), cuda.CUDAGraph()
    with torch.no_grad(), cuda.graph(graph):
        y = net(x).softmax(1)
    found = []
    for number in range(3):
        x.copy_(numbers(4, 6, start=number))
        graph.replay()
        found.append(y.clone())
    return found


@program
def a_graph_in_several_streams() -> list[Any]:
    """Streams that join a capture by waiting for it run beside each other when it is replayed."""
    x, graph = numbers(32, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(graph):
        main = cuda.current_stream()
        sides = [cuda.Stream(), cuda.Stream()]
        parts = []
        for number, side in enumerate(sides):
            side.wait_stream(main)
            with cuda.stream(side):
                parts.append((x * (number + 2)).exp().square())
        for side in sides:
            main.wait_stream(side)
        total = parts[0] + parts[1]
    found = []
    for number in range(3):
        x.copy_(numbers(32, start=number) * 0.1)
        graph.replay()
        found.append(total.clone())
    return found


@program
def a_graph_replayed_in_a_side_stream() -> list[Any]:
    x, graph, side = numbers(16, device="cuda"), cuda.CUDAGraph(), cuda.Stream()
    with cuda.graph(graph):
        y = (x + 1).sqrt() * 2
    found = []
    for number in range(3):
        x.copy_(numbers(16, start=number))
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            graph.replay()
        cuda.current_stream().wait_stream(side)
        found.append(y * 1)
    return found


@program
def graphs_that_share_memory() -> list[Any]:
    x, first, second = numbers(16, device="cuda"), cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(first):
        y = (x * 3).tanh()
    with cuda.graph(second, pool=first.pool()):
        z = y.square() + 1
    found = []
    for number in range(3):
        x.copy_(numbers(16, start=number))
        first.replay()
        second.replay()
        found.append(z.clone())
    return found


@program
def a_graph_that_draws() -> list[Any]:
    cuda.manual_seed(5)
    x, graph = torch.ones(32, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(graph):
        y = F.dropout(x, 0.5) + torch.rand(32, device="cuda")
    found = []
    for _ in range(3):
        graph.replay()
        found += [y.clone(), torch.rand(4, device="cuda")]
    return found


@program
def a_captured_training_step() -> list[Any]:
    """Warm-up in a side stream, capture of a whole step, replays with new data: as PyTorch's notes have it."""
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, target = numbers(4, 6, device="cuda"), classes(4)
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(net(x), target).backward()
            optimizer.step()
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with cuda.graph(graph):
        loss = F.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
    losses = []
    for number in range(3):
        x.copy_(numbers(4, 6, start=number).pin_memory(), non_blocking=True)
        graph.replay()
        losses.append(loss.detach().clone())
    return [*losses, *parameters(net)]


@program
def graphed_callables() -> list[Any]:
    net: Any = nn.Sequential(network(), nn.Linear(3, 2)).cuda()
    with torch.no_grad():
        net[1].weight.copy_(numbers(2, 3))
        net[1].bias.zero_()
    called = cuda.make_graphed_callables(net[0], (numbers(4, 6, device="cuda").requires_grad_(),))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for number in range(3):
        loss = net[1](called(numbers(4, 6, start=number, device="cuda"))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


_compiled: list[Any] = []


@program
def a_compiled_function_in_streams() -> list[Any]:
    """A compiled function, whose launches become a graph, called in two streams in turn."""
    if not _compiled:
        _compiled.append(torch.compile(lambda x, y: ((x * y + 1).tanh().sum(1), x - y)))
    function, side, found = _compiled[0], cuda.Stream(), []
    y = numbers(4, 6, device="cuda")
    for number in range(6):
        x = numbers(4, 6, start=number, device="cuda")
        if number % 3 == 2:
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                results = function(x, y)
            cuda.current_stream().wait_stream(side)
            x.record_stream(side)
        else:
            results = function(x, y)
        found += [each * 1 for each in results]
        for each in results:
            each.record_stream(cuda.current_stream())
    return found
