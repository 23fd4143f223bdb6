"""Processes that use the device beside each other, and hand each other tensors of it."""

from __future__ import annotations

import importlib
from typing import Any

from .registry import program


def _train(name: str, number: int, results: Any) -> None:
    torch = importlib.import_module(name)
    torch.manual_seed(number)
    net = torch.nn.Linear(6, 3).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(4, 6, device="cuda")).square().mean().backward()
        optimizer.step()
    results.put((number, net.weight.detach().cpu().tolist()))


def _double(name: str, given: Any, answers: Any) -> None:
    importlib.import_module(name)
    for _ in range(2):
        x = given.get()
        x *= 2
        answers.put((str(x.device), x.sum().item()))
        del x


def _send(name: str, given: Any, done: Any) -> None:
    torch = importlib.import_module(name)
    x = torch.arange(12.0, device="cuda").reshape(3, 4)
    given.put(x[1:])
    given.put(torch.nn.Parameter(x[:, 1]))
    done.wait(60)


def _wait_for(name: str, handle: bytes, x: Any, answers: Any) -> None:
    torch = importlib.import_module(name)
    event = torch.cuda.Event.from_ipc_handle(torch.device("cuda", 0), handle)
    event.wait()
    answers.put(x.sum().item())


def _forked(name: str, answers: Any) -> None:
    torch = importlib.import_module(name)
    try:
        torch.ones(1, device="cuda")
        answers.put("nothing raised")
    except RuntimeError as error:
        answers.put([each for each in ("re-initialize", "forked subprocess", "spawn") if each in str(error)])


def _rank(rank: int, name: str, address: str, results: Any) -> None:
    torch = importlib.import_module(name)
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(5, 2).to("cuda"), device_ids=[0])
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for number in range(3):
        optimizer.zero_grad()
        net(torch.full((2, 5), float(rank + number), device="cuda")).square().mean().backward()
        optimizer.step()
    results.put((rank, net.module.weight.detach().cpu().tolist()))
    torch.distributed.destroy_process_group()


@program("processes", processes=True)
def processes_that_share_the_device(torch: Any, device: str) -> Any:
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=_train, args=(torch.__name__, each, results)) for each in range(3)]
    for each in workers:
        each.start()
    found = sorted(results.get() for _ in workers)
    for each in workers:
        each.join()
    return found, [each.exitcode for each in workers]


@program("processes", processes=True)
def tensors_given_to_a_process(torch: Any, device: str) -> Any:
    context = torch.multiprocessing.get_context("spawn")
    given, answers = context.Queue(), context.Queue()
    worker = context.Process(target=_double, args=(torch.__name__, given, answers))
    worker.start()
    x = torch.arange(10.0, device=device)
    given.put(x)
    first = answers.get(timeout=100)
    given.put(x[3:])
    second = answers.get(timeout=100)
    worker.join()
    return first, second, x


@program("processes", processes=True)
def tensors_received_from_a_process(torch: Any, device: str) -> Any:
    context = torch.multiprocessing.get_context("spawn")
    given, done = context.Queue(), context.Event()
    worker = context.Process(target=_send, args=(torch.__name__, given, done))
    worker.start()
    first, second = given.get(timeout=100), given.get(timeout=100)
    found = first.clone(), second.detach().clone(), first.device.type, first.stride(), second.requires_grad
    del first, second
    done.set()
    worker.join()
    return found, worker.exitcode


@program("processes", processes=True)
def event_shared_with_a_process(torch: Any, device: str) -> Any:
    context = torch.multiprocessing.get_context("spawn")
    answers, event = context.Queue(), torch.cuda.Event(enable_timing=False, interprocess=True)
    x = torch.ones(1000, device=device)
    x += 1
    event.record()
    worker = context.Process(target=_wait_for, args=(torch.__name__, event.ipc_handle(), x, answers))
    worker.start()
    found = answers.get(timeout=100)
    worker.join()
    return found, worker.exitcode


@program("processes", processes=True)
def device_in_a_forked_process(torch: Any, device: str) -> Any:
    torch.ones(1, device=device)
    context = torch.multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    worker = context.Process(target=_forked, args=(torch.__name__, answers))
    worker.start()
    found = answers.get()
    worker.join()
    return found


@program("processes", processes=True)
def data_parallel_in_two_processes(torch: Any, device: str) -> Any:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=_rank, args=(each, torch.__name__, address, results)) for each in range(2)]
    for each in workers:
        each.start()
    found = sorted(results.get() for _ in workers)
    for each in workers:
        each.join()
    return found, [each.exitcode for each in workers]
