"""Small programs that use one device's streams as PyTorch's notes on CUDA semantics and as libraries do; none races.

Each returns tensors. `several.py` has those for several devices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

cuda = torch.cuda
Program = Callable[[], list[Any]]
PROGRAMS: dict[str, Program] = {}
"""By name; all work on one device."""


def program(function: Program) -> Program:
    """Take a program into the list."""
    PROGRAMS[function.__name__] = function
    return function


def numbers(*shape: int, start: int = 0, device: Any = "cpu") -> Any:
    """Numbers between -1 and 1, always the same."""
    count = 1
    for size in shape:
        count *= size
    return ((torch.arange(start, start + count, device="cpu") * 37 % 101).float() / 50 - 1).reshape(shape).to(device)


def network(device: Any = "cuda") -> Any:
    """Two layers with parameters that are always the same."""
    made: Any = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    with torch.no_grad():
        for number, each in enumerate(made.parameters()):
            each.copy_(numbers(*each.shape, start=7 * number) * 0.5)
    return made.to(device)


def classes(count: int, device: Any = "cuda") -> Any:
    """Targets of three classes."""
    return (torch.arange(count) % 3).to(device)


def step(net: Any, optimizer: Any, number: int, device: Any = "cuda") -> Any:
    """One step of training; the loss."""
    loss: Any = F.cross_entropy(net(numbers(5, 6, start=number, device=device)), classes(5, device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def parameters(net: Any) -> list[Any]:
    return [each.detach() for each in net.parameters()]


# ----- training -------------------------------------------------------------------------------------------------------


@program
def training() -> list[Any]:
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    return [*[step(net, optimizer, number) for number in range(3)], *parameters(net)]


@program
def training_in_a_side_stream() -> list[Any]:
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        losses = [step(net, optimizer, number) for number in range(3)]
    cuda.current_stream().wait_stream(side)
    return [*losses, *parameters(net)]


@program
def forward_in_a_side_stream() -> list[Any]:
    """`backward` is called where the forward pass was not: it waits for it, and what follows waits for its end."""
    net, side = network(), cuda.Stream()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for number in range(3):
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            loss = net(numbers(5, 6, start=number, device="cuda")).square().sum()
            losses.append(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss
    cuda.current_stream().wait_stream(side)
    return [*losses, *parameters(net)]


@program
def backward_in_a_side_stream() -> list[Any]:
    net, side = network(), cuda.Stream()
    found = []
    for number in range(3):
        net.zero_grad()
        loss = F.cross_entropy(net(numbers(5, 6, start=number, device="cuda")), classes(5))
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            loss.backward()
        cuda.current_stream().wait_stream(side)
        found += [each.grad.clone() for each in net.parameters()]
        del loss
    return found


@program
def branches_in_two_streams() -> list[Any]:
    """Two branches of one model in two streams; the gradients of what they share are added up."""
    x: Any = numbers(4, 4, device="cuda").requires_grad_()
    weights = [numbers(4, 4, start=n, device="cuda").requires_grad_() for n in (3, 9)]
    streams = [cuda.Stream(), cuda.Stream()]
    main = cuda.current_stream()
    results = []
    for stream, weight in zip(streams, weights, strict=True):
        stream.wait_stream(main)
        with cuda.stream(stream):
            y = (x @ weight).tanh()
            y.record_stream(main)
            results.append(y)
    for stream in streams:
        main.wait_stream(stream)
    (results[0] * results[1]).sum().backward()
    return [x.grad, *[each.grad for each in weights]]


@program
def gradients_reduced_while_backward_goes_on() -> list[Any]:
    """As `DistributedDataParallel` does: a hook of each parameter gives its gradient to a stream for communication."""
    net, comm = network(), cuda.Stream()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def reduce(parameter: Any) -> None:
        comm.wait_stream(cuda.current_stream())
        with cuda.stream(comm):
            parameter.grad.div_(2)
            parameter.grad.record_stream(comm)

    for each in net.parameters():
        each.register_post_accumulate_grad_hook(reduce)
    losses = []
    for number in range(3):
        loss = net(numbers(5, 6, start=number, device="cuda")).square().mean()
        loss.backward()
        cuda.current_stream().wait_stream(comm)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [*losses, *parameters(net)]


@program
def buckets_of_gradients() -> list[Any]:
    """Gradients are copied into one bucket in another stream, reduced, and copied back."""
    net, comm = network(), cuda.Stream()
    sizes = [each.numel() for each in net.parameters()]
    bucket = torch.zeros(sum(sizes), device="cuda")
    found = []
    for number in range(2):
        net.zero_grad()
        net(numbers(5, 6, start=number, device="cuda")).square().mean().backward()
        ready = cuda.Event()
        ready.record()
        with cuda.stream(comm):
            comm.wait_event(ready)
            grads = [each.grad for each in net.parameters()]
            torch.cat([each.flatten() for each in grads], out=bucket)
            bucket.mul_(0.5)
            for grad, part in zip(grads, bucket.split(sizes), strict=True):
                grad.copy_(part.view_as(grad))
                grad.record_stream(comm)
            done = comm.record_event()
        done.wait()
        found += [each.grad.clone() for each in net.parameters()]
    return found


@program
def loss_scaling() -> list[Any]:
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cuda", init_scale=16.0)
    losses = []
    for number in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(net(numbers(5, 6, start=number, device="cuda")), classes(5))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return [*losses, *parameters(net)]


@program
def activations_offloaded_to_pinned_memory() -> list[Any]:
    net = network()
    x = numbers(5, 6, device="cuda").requires_grad_()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = net(x).tanh().square().sum()
    loss.backward()
    return [x.grad, *[each.grad for each in net.parameters()]]


@program
def checkpointed_layers_in_a_side_stream() -> list[Any]:
    net, side = network(), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        x: Any = numbers(5, 6, device="cuda").requires_grad_()
        y = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        y.square().sum().backward()
    cuda.current_stream().wait_stream(side)
    return [x.grad, *[each.grad for each in net.parameters()]]


# ----- copies ---------------------------------------------------------------------------------------------------------


class Prefetcher:
    """Copies the next batch in a stream of its own while the present one is used, as libraries write it."""

    def __init__(self, batches: list[tuple[Any, Any]]) -> None:
        self._batches = iter(batches)
        self._stream = cuda.Stream()
        self._preload()

    def _preload(self) -> None:
        found = next(self._batches, None)
        if found is None:
            self._next = None
            return
        with cuda.stream(self._stream):
            data, target = (each.cuda(non_blocking=True) for each in found)
            self._next = data.float() * 2 - 1, target

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        while self._next is not None:
            cuda.current_stream().wait_stream(self._stream)
            data, target = self._next
            data.record_stream(cuda.current_stream())
            target.record_stream(cuda.current_stream())
            self._preload()
            yield data, target


@program
def prefetched_batches() -> list[Any]:
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = [(numbers(4, 6, start=n).pin_memory(), (torch.arange(4) % 3).pin_memory()) for n in range(4)]
    losses = []
    for data, target in Prefetcher(batches):
        loss = F.cross_entropy(net(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *parameters(net)]


@program
def a_loader_with_pinned_memory() -> list[Any]:
    data = torch.utils.data.TensorDataset(numbers(12, 6), torch.arange(12) % 3)
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    net, losses = network(), []
    for x, target in loader:
        losses.append(F.cross_entropy(net(x.to("cuda", non_blocking=True)), target.to("cuda", non_blocking=True)))
    return [each.detach() for each in losses]


@program
def pinned_memory_freed_at_once() -> list[Any]:
    """The pool of pinned memory does not hand a buffer out again before the copy has read it."""
    return [(numbers(64, start=n).pin_memory().to("cuda", non_blocking=True) + 1).sum(0) for n in range(12)]


@program
def a_pinned_buffer_used_again() -> list[Any]:
    buffer, done, found = torch.empty(32).pin_memory(), cuda.Event(), []
    for number in range(4):
        done.synchronize()
        buffer.copy_(numbers(32, start=number))
        x = buffer.to("cuda", non_blocking=True)
        done.record()
        found.append(x * 2)
    return found


@program
def results_copied_to_pinned_memory() -> list[Any]:
    x, found = numbers(16, device="cuda"), []
    for number in range(3):
        y = (x * number).to("cpu", non_blocking=True)
        done = cuda.Event()
        done.record()
        x = x + 1
        done.synchronize()
        found.append(y.clone())
    out = torch.empty(16).pin_memory()
    out.copy_(x, non_blocking=True)
    cuda.current_stream().synchronize()
    return [*found, out.clone()]


@program
def two_buffers_in_turn() -> list[Any]:
    """Copies to the device, work, and copies back, each in a stream of its own, with two buffers of each kind."""
    upload, compute, download = (cuda.Stream() for _ in range(3))
    host = [torch.empty(8).pin_memory() for _ in range(2)]
    back = [torch.empty(8).pin_memory() for _ in range(2)]
    device = [torch.empty(8, device="cuda") for _ in range(2)]
    results = [torch.empty(8, device="cuda") for _ in range(2)]
    uploaded, computed, downloaded = ([cuda.Event() for _ in range(2)] for _ in range(3))
    found: list[Any] = []
    for number in range(5):
        at = number % 2
        uploaded[at].synchronize()
        host[at].copy_(numbers(8, start=number))
        with cuda.stream(upload):
            upload.wait_event(computed[at])
            device[at].copy_(host[at], non_blocking=True)
            uploaded[at].record()
        if number >= 2:
            downloaded[at].synchronize()
            found.append(back[at].clone())
        with cuda.stream(compute):
            compute.wait_event(uploaded[at])
            compute.wait_event(downloaded[at])
            torch.mul(device[at], 3, out=results[at])
            computed[at].record()
        with cuda.stream(download):
            download.wait_event(computed[at])
            back[at].copy_(results[at], non_blocking=True)
            downloaded[at].record()
    cuda.synchronize()
    return [*found, *[each.clone() for each in back]]


# ----- streams, events, memory ----------------------------------------------------------------------------------------


@program
def events_between_three_streams() -> list[Any]:
    streams = [cuda.Stream() for _ in range(3)]
    x = numbers(32, device="cuda")
    ready = cuda.current_stream().record_event()
    for number, stream in enumerate(streams * 2):
        with cuda.stream(stream):
            stream.wait_event(ready)
            y = x * (number + 1) + 1
            x.record_stream(stream)
            ready = stream.record_event()
        x = y
    cuda.current_stream().wait_event(ready)
    x.record_stream(cuda.current_stream())
    return [x * 1]


@program
def asking_an_event() -> list[Any]:
    side, event = cuda.Stream(), cuda.Event()
    with cuda.stream(side):
        x = numbers(16, device="cuda")
        for _ in range(5):
            x = x * 1.5
        host = torch.empty(16).pin_memory()
        host.copy_(x, non_blocking=True)
        event.record()
    while not event.query():
        pass
    return [host.clone()]


@program
def memory_used_by_another_stream() -> list[Any]:
    side, found = cuda.Stream(), []
    for number in range(6):
        x = numbers(64, start=number, device="cuda")
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x.square() * 2
        x.record_stream(side)
        del x
        cuda.current_stream().wait_stream(side)
        found.append(y * 1)
        y.record_stream(cuda.current_stream())
    return found


@program
def memory_freed_while_another_stream_reads_it() -> list[Any]:
    """The streams do not meet between the rounds: only `record_stream` keeps the memory."""
    side, found = cuda.Stream(), []
    for number in range(6):
        x = numbers(64, start=number, device="cuda")
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            found.append(x.exp())
        x.record_stream(side)
        del x
    cuda.current_stream().wait_stream(side)
    return [each * 1 for each in found]


@program
def work_in_a_side_stream_after_backward() -> list[Any]:
    """Backward, called in the default stream, frees memory of a side stream, which goes on without waiting."""
    side = cuda.Stream()
    weight = numbers(8, 8, device="cuda").requires_grad_()
    side.wait_stream(cuda.current_stream())
    found = []
    for number in range(3):
        with cuda.stream(side):
            loss = (numbers(8, 8, start=number, device="cuda") @ weight).tanh().square().sum()
        loss.backward()
        del loss
        with cuda.stream(side):
            found.append(numbers(8, 8, start=number, device="cuda").exp().square())
    cuda.current_stream().wait_stream(side)
    return [weight.grad, *[each * 1 for each in found]]


@program
def memory_kept_alive_instead() -> list[Any]:
    """No `record_stream`: tensors live until the streams have met again."""
    side = cuda.Stream()
    kept, found = [], []
    for number in range(4):
        x = numbers(64, start=number, device="cuda")
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x.exp().sum()
        kept += [x, y]
        found.append(y)
    cuda.current_stream().wait_stream(side)
    return [torch.stack(found) * 2]


@program
def the_cache_emptied_in_between() -> list[Any]:
    side, count = cuda.Stream(), 3 << 20  # so much memory has a segment of its own: nothing else keeps it in the cache
    x = numbers(count, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 2
    del x
    cuda.empty_cache()
    z = torch.zeros(count, device="cuda")
    cuda.current_stream().wait_stream(side)
    return [(y + z)[::65_537]]


@program
def a_pool_for_a_stream() -> list[Any]:
    side, pool = cuda.Stream(), cuda.MemPool()
    found = []
    for number in range(3):
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side), cuda.use_mem_pool(pool):
            y = (numbers(32, start=number, device="cuda") + 1).sqrt().sum()
        cuda.current_stream().wait_stream(side)
        found.append(y * 1)
        y.record_stream(cuda.current_stream())
    return found


@program
def threads_with_streams() -> list[Any]:
    x, results = numbers(6, 6, device="cuda"), {}
    ready = cuda.current_stream().record_event()

    def work(number: int) -> None:
        stream = cuda.Stream()
        with cuda.stream(stream):
            stream.wait_event(ready)
            y = x
            for _ in range(3):
                y = (y @ x).tanh() + number
            results[number] = y, stream

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for _, stream in results.values():
        cuda.current_stream().wait_stream(stream)
    return [results[number][0] * 1 for number in range(3)]


@program
def random_numbers_in_streams() -> list[Any]:
    cuda.manual_seed(3)
    streams, found = [cuda.Stream(), cuda.Stream()], []
    generators = [torch.Generator("cuda").manual_seed(n) for n in (1, 2)]
    for _ in range(2):
        for stream, generator in zip(streams, generators, strict=True):
            stream.wait_stream(cuda.current_stream())
            with cuda.stream(stream):
                x = torch.rand(8, device="cuda", generator=generator)
                y = F.dropout(torch.ones(16, device="cuda"), 0.5) + torch.randn(16, device="cuda")
            cuda.current_stream().wait_stream(stream)
            found += [x * 2, y * 2]
            x.record_stream(cuda.current_stream())
            y.record_stream(cuda.current_stream())
    return found


@program
def library_functions_in_streams() -> list[Any]:
    """Sorting, positions and lists of elements: what is no kernel of ours."""
    side = cuda.Stream()
    x = numbers(20, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        values, order = x.sort()
        positive = x[x > 0]
        picked = x[torch.tensor([3, 1, 2], device="cuda")]
        unique = (x * 3).long().unique()
    cuda.current_stream().wait_stream(side)
    return [values, order, positive, picked, unique]
