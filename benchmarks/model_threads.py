"""How N threads with a model each scale on a Python without the global lock: training steps a second, 1 to 16 threads.

python3.14t benchmarks/model_threads.py
python3.14t benchmarks/model_threads.py --threads 1 2 4 --seconds 1

Each thread trains a model of its own, with one thread for its kernels, so that what scales is Python. `tiny` is a
perceptron of 32 features, all overhead; `network` convolves images; `compiled` is the perceptron with `compile`. Every
thread's losses must be those that it gets alone. With the lock the threads take turns, and the numbers stay at 1.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable

import flambeau as torch
from flambeau import nn

Step = Callable[[], float]


def perceptron(seed: int, compiles: bool = False) -> Step:
    """A training step of two small layers."""
    generator = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return trained(model, torch.randn(16, 32, generator=generator), generator, compiles)


def network(seed: int) -> Step:
    """A training step of a small convolutional network."""
    generator = torch.Generator().manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 10),
    )
    return trained(model, torch.randn(8, 3, 16, 16, generator=generator), generator)


def trained(model: nn.Module, x: torch.Tensor, generator: torch.Generator, compiles: bool = False) -> Step:
    """What trains the model by one step, from parameters drawn by the generator, and returns the loss."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    labels = torch.arange(len(x)) % 10
    forward = torch.compile(model) if compiles else model

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


MODELS: dict[str, Callable[[int], Step]] = {
    "tiny": perceptron,
    "network": network,
    "compiled": lambda seed: perceptron(seed, True),
}


def steps_a_second(model: Callable[[int], Step], threads: int, seconds: float) -> float:
    """Of all threads together; each checks its first losses against those of a run alone."""
    expected = []
    for number in range(threads):
        step = model(number)
        expected.append([step() for _ in range(5)])
    steps = [model(number) for number in range(threads)]
    counts, wrong = [0] * threads, list[str]()
    barrier = threading.Barrier(threads + 1)

    def run(number: int) -> None:
        step = steps[number]
        losses = [step() for _ in range(5)]
        if losses != expected[number]:
            wrong.append(f"thread {number}: {losses} instead of {expected[number]}")
        barrier.wait()
        end, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            step()
            count += 1
        counts[number] = count

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    assert not wrong, wrong
    return sum(counts) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", choices=MODELS, nargs="+", default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, {'with' if lock else 'without'} the global lock")
    print("threads: training steps a second of all of them (as a multiple of one's)")
    for name in arguments.only:
        rates = [steps_a_second(MODELS[name], threads, arguments.seconds) for threads in arguments.threads]
        shown = (f"{n}: {rate:,.0f} ({rate / rates[0]:.2f})" for n, rate in zip(arguments.threads, rates, strict=True))
        print(f"{name:10}", "  ".join(shown), flush=True)


if __name__ == "__main__":
    main()
