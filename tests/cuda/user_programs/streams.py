"""Streams, events and CUDA graphs."""

from __future__ import annotations

from typing import Any

from .registry import program, refusal


@program("streams", cuda=True)
def work_in_two_streams(torch: Any, device: str) -> Any:
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.ones(1 << 16, device=device)
    for each in (one, two):
        each.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(one):
        a = (x * 3).cumsum(0)
    with torch.cuda.stream(two):
        two.wait_stream(one)
        b = a.flip(0) + 1
    torch.cuda.current_stream().wait_stream(two)
    return b.sum(), b[:5], one.query() or True, one == two


@program("streams", cuda=True)
def events_and_times(torch: Any, device: str) -> Any:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    x = torch.ones(512, 512, device=device)
    for _ in range(5):
        x = x @ x / 512
    end.record()
    end.synchronize()
    plain = torch.cuda.Event()
    plain.record()
    plain.synchronize()
    asked = refusal(lambda: plain.elapsed_time(plain), "enable_timing")
    return start.elapsed_time(end) >= 0, end.query(), plain.query(), x[0, 0], asked


@program("streams", cuda=True)
def event_between_streams(torch: Any, device: str) -> Any:
    side, ready = torch.cuda.Stream(), torch.cuda.Event()
    x = torch.arange(1000.0, device=device)
    ready.record()
    with torch.cuda.stream(side):
        side.wait_event(ready)
        y = x.square()
        done = side.record_event()
    done.wait()
    return y.sum(), done.query() or True


@program("streams", cuda=True)
def stream_in_use(torch: Any, device: str) -> Any:
    cuda = torch.cuda
    side, fast = cuda.Stream(), cuda.Stream(priority=-1)
    with cuda.stream(side):
        inside = cuda.current_stream() == side
        with cuda.stream(fast):
            nested = cuda.current_stream() == fast
    cuda.set_stream(side)
    chosen = cuda.current_stream() == side
    cuda.set_stream(cuda.default_stream())
    return inside, nested, chosen, cuda.current_stream() == cuda.default_stream(), fast.priority, side.device.type


@program("streams", cuda=True)
def stream_of_another_library(torch: Any, device: str) -> Any:
    made = torch.cuda.Stream()
    other = torch.cuda.ExternalStream(made.cuda_stream)
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        x = torch.arange(10.0, device=device) * 2
    other.synchronize()
    return x, other.cuda_stream == made.cuda_stream, other.query()


@program("streams", cuda=True)
def backward_in_a_stream(torch: Any, device: str) -> Any:
    side, net = torch.cuda.Stream(), torch.nn.Linear(8, 8).to(device)
    x = torch.randn(4, 8).to(device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = net(x).square().sum()
    torch.cuda.current_stream().wait_stream(side)
    loss.backward()
    return loss, net.weight.grad


@program("streams", cuda=True)
def debug_mode_of_synchronization(torch: Any, device: str) -> Any:
    x = torch.ones(3, device=device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = refusal(lambda: x.sum().item(), "synchronizing")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return found, x.sum().item(), torch.cuda.get_sync_debug_mode()


@program("graphs", cuda=True)
def captured_and_replayed(torch: Any, device: str) -> Any:
    x = torch.zeros(5, device=device)
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x * 2 + 1
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    seen = []
    for number in range(3):
        x.fill_(number)
        graph.replay()
        seen.append(y.clone())
    return seen


@program("graphs", cuda=True)
def captured_training_step(torch: Any, device: str) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), 0.01, capturable=True)
    x, y = torch.zeros(4, 8, device=device), torch.zeros(4, 1, device=device)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph, losses = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        loss = step()
    for number in range(4):
        x.copy_(torch.arange(32.0).reshape(4, 8) / (20 + number))
        y.fill_(number)
        graph.replay()
        losses.append(loss.clone())
    return losses, list(net.parameters())


@program("graphs", cuda=True)
def graphed_callables(torch: Any, device: str) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh()).to(device)
    graphed = torch.cuda.make_graphed_callables(net, (torch.randn(3, 6).to(device),))
    results = []
    for _ in range(2):
        net.zero_grad()
        found = graphed(torch.randn(3, 6).to(device))
        found.sum().backward()
        results += [found.detach().clone(), *[each.grad.clone() for each in net.parameters()]]
    return results


@program("graphs", cuda=True)
def random_numbers_of_replays(torch: Any, device: str) -> Any:
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(64, device=device)
    torch.nn.functional.dropout(x)
    torch.cuda.synchronize()
    torch.cuda.manual_seed(5)
    with torch.cuda.graph(graph):
        y = torch.nn.functional.dropout(x, 0.5) + torch.rand(64, device=device)
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(y.clone())
    different = not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])
    torch.cuda.manual_seed(5)
    graph.replay()
    return different, torch.equal(y, seen[0])


@program("graphs", cuda=True)
def graphs_that_share_memory(torch: Any, device: str) -> Any:
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    x = torch.ones(100, device=device)
    with torch.cuda.graph(first):
        a = x.exp()
    with torch.cuda.graph(second, pool=first.pool()):
        b = a * 2
    first.replay()
    second.replay()
    return b.sum(), first.pool() == second.pool()


@program("graphs", cuda=True)
def what_a_capture_refuses(torch: Any, device: str) -> Any:
    x = torch.ones(3, device=device)
    graph = torch.cuda.CUDAGraph()
    before = torch.cuda.is_current_stream_capturing()
    with torch.cuda.graph(graph):
        inside = torch.cuda.is_current_stream_capturing()
        x + 1
    return before, inside, refusal(lambda: torch.cuda.CUDAGraph().replay(), "capture")
