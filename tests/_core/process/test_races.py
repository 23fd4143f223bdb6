"""Threads that run eager ops, backward and compiled programs at once get what one thread gets alone.

Switches between threads come at nearly every bytecode, and each thread also gives way at random moments. On a Python
without the global lock the threads run at the same time. `FLAMBEAU_RACE_SECONDS` lets it run longer.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import flambeau as torch

THREADS = 8
SECONDS = float(os.environ.get("FLAMBEAU_RACE_SECONDS", "1.5"))

Job = Callable[[], list[list[float]]]


def eager(seed: int) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(6, 8, generator=generator)
    y = torch.softmax(x @ x.T, -1).add_(1).mul(x[:, :6]).cumsum(1)
    return [torch.cat([y, y.sort().values])[1:].flatten().tolist(), torch.linalg.svdvals(y).tolist()]


def backward(seed: int) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(8, 8, generator=generator, requires_grad=True)
    x = torch.randn(5, 8, generator=generator)
    hidden = torch.nn.functional.layer_norm(x @ shared, [8]).tanh()
    (hidden @ shared.T).square().mean().backward()
    assert shared.grad is not None
    (again,) = torch.autograd.grad((x @ shared).exp().sum(), shared)
    return [shared.grad.flatten().tolist(), again.flatten().tolist()]


def training(seed: int) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    layer = torch.nn.Linear(8, 4)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.01)
    x = torch.randn(16, 8, generator=generator)
    for _ in range(3):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()
    return [parameter.flatten().tolist() for parameter in layer.parameters()]


@torch.compile
def _program(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x @ weight).mean(1) * 2


def compiled(seed: int) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(4, 8, generator=generator), torch.randn(8, 8, generator=generator, requires_grad=True)
    result = _program(x, weight)
    result.sum().backward()
    assert weight.grad is not None
    return [result.tolist(), weight.grad.flatten().tolist()]


def large(seed: int) -> list[list[float]]:
    """Generated kernels, the thread pool and the allocator."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(300, 200, generator=generator, requires_grad=True)
    (x.exp().tanh() * x).sum().backward()
    assert x.grad is not None
    return [x.grad[0].tolist()]


WORK = (eager, backward, training, compiled, large)


@pytest.fixture
def switching_all_the_time() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching_all_the_time")
def test_threads_at_once_get_what_one_gets_alone() -> None:
    expected = {(work, seed): work(seed) for work in WORK for seed in range(3)}
    end, failures, done = time.monotonic() + SECONDS, list[str](), [0] * THREADS

    def run(number: int) -> None:
        choose = random.Random(number)
        try:
            while time.monotonic() < end and not failures:
                work, seed = choose.choice(WORK), choose.randrange(3)
                if choose.random() < 0.5:
                    time.sleep(choose.random() * 1e-4)
                if (found := work(seed)) != expected[work, seed]:
                    failures.append(f"{work.__name__}({seed}): {found} instead of {expected[work, seed]}")
                done[number] += 1
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}")
            raise

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0][:2000]
    assert sum(done) >= THREADS
    print(f"{sum(done)} calls by {THREADS} threads in {SECONDS} s")
