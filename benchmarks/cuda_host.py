"""What Python does in a step on a GPU, and nothing else: the steps of `train_steps.py`, on a device that does nothing.

No GPU is needed. Kernels are neither compiled nor run, libraries are never called, memory is numbers: what is left is
the time that a GPU waits for its next kernel, of which there is one for each call of the driver.

python benchmarks/cuda_host.py
python benchmarks/cuda_host.py --only ResNet Llama --profile 40
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from _train_steps import cuda as steps
from _train_steps import networks
from _train_steps.workloads import training_step

import flambeau
from flambeau._backends.cuda import conv, cudnn, linear
from flambeau._backends.cuda.backend import install_backend
from flambeau._backends.cuda.driver import use
from tests.support.simulated_cuda import SimulatedDriver

COUNTED: dict[str, int] = {}


def _count(what: str) -> None:
    COUNTED[what] = COUNTED.get(what, 0) + 1


class IdleDriver(SimulatedDriver):
    """A device on which nothing happens; what would is counted."""

    def __init__(self) -> None:
        super().__init__()
        self._end = 1 << 40
        vars(self.supplier).update(take=self._take, give=lambda pointer: None)

    def _take(self, nbytes: int) -> int:
        self._end += (nbytes + 511) & -512
        return self._end

    def upload(self, pointer: int, host: Any) -> None:
        _count("upload")

    def download(self, host: Any, pointer: int) -> None:
        host[...] = 1

    def copy(self, target: int, source: int, nbytes: int) -> None:
        _count("copy")

    def clear(self, pointer: int, nbytes: int) -> None:
        _count("clear")

    def compile(self, source: str) -> Callable[[int, int, bytes], None]:
        def launch(blocks: int, threads: int, fields: bytes) -> None:
            _count("launch")

        return launch

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Callable[[int, int, int], None]:
        return lambda result, left, right: _count("product")

    def seen(self, array: Any) -> Any:
        return np.zeros(array.shape, array.dtype)  # what the library would sort and select

    def block_threads(self, wanted: int) -> int:
        return wanted


class _Idle:
    """A plan of a library that is not there."""

    def __init__(self, *description: Any) -> None: ...

    def __call__(self, *operands: Any) -> None:
        _count("library")


def _resnet(torch: Any) -> Callable[[], Any]:
    """ResNet-50 on two images of 64x64: the sizes do not matter here."""
    model = networks.residual(torch, True, (3, 4, 6, 3)).to("cuda", torch.bfloat16)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    images = torch.randn(2, 3, 64, 64).to("cuda", torch.bfloat16).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (2,)).cuda()
    return training_step(model, optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels))


def _gpt(torch: Any) -> Callable[[], Any]:
    model = networks.gpt(torch, 1000, 64, 4, 12, 128).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ids = torch.randint(0, 1000, (2, 129)).cuda()
    given, wanted = ids[:, :-1], ids[:, 1:].reshape(-1)
    return training_step(
        model, optimizer, lambda: torch.nn.functional.cross_entropy(model(given).view(-1, 1000), wanted)
    )


def _llama(torch: Any) -> Callable[[], Any]:
    model = networks.llama(torch, 1000, 64, 128, 4, 2, 16).to("cuda", torch.bfloat16)
    ids = torch.randint(0, 1000, (1, 64)).cuda()

    def step() -> Any:
        with torch.no_grad():
            return model(ids).float().mean()

    return step


def _op(function: Callable[..., Any]) -> Callable[[Any], Callable[[], Any]]:
    def build(torch: Any) -> Callable[[], Any]:
        x, y = torch.randn(16, 16).cuda(), torch.randn(16, 16).cuda()
        return lambda: function(torch, x, y)

    return build


WORKLOADS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "ResNet-50": _resnet, "GPT-2": _gpt, "Llama, forward": _llama, "convnet": steps.train_convnet,
    "MLP": steps.train_mlp, "LSTM": steps.train_lstm, "x + y": _op(lambda t, x, y: x + y),
    "x * 2": _op(lambda t, x, y: x * 2), "relu": _op(lambda t, x, y: x.relu()), "sum": _op(lambda t, x, y: x.sum()),
    "softmax": _op(lambda t, x, y: x.softmax(1)), "x @ y": _op(lambda t, x, y: x @ y),
}  # fmt: skip


def measured(step: Callable[[], Any], seconds: float) -> tuple[float, dict[str, int]]:
    """Microseconds of the quickest step, and what a step asks of the driver."""
    for _ in range(120):  # ops that are called often have functions of their own from some call on
        step()
        if len(COUNTED) > 1 and sum(COUNTED.values()) > 2000:
            break
    COUNTED.clear()
    step()
    counted = dict(COUNTED)
    best, calls, end = float("inf"), 1, perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        for _ in range(calls):
            step()
        taken = perf_counter() - start
        best = min(best, taken / calls)
        if taken < 1e-3:
            calls *= 2
    return best * 1e6, counted


def main() -> None:
    """Measure, print a line for each, and the functions that take longest if asked to."""
    parser = argparse.ArgumentParser(description="What Python costs of a step on a GPU.")
    parser.add_argument("--only", metavar="REGEX", nargs="+", type=re.compile, help="only what one of them matches")
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring each (2)")
    parser.add_argument("--profile", type=int, default=0, metavar="LINES", help="print the functions that take longest")
    options = parser.parse_args()
    use(IdleDriver())
    install_backend()
    with (
        mock.patch.multiple(conv, library=lambda: True, Convolution=_Idle),
        mock.patch.multiple(cudnn, library=lambda: True, Plan=_Idle),
        mock.patch.object(linear, "Product", _Idle),
        mock.patch.object(flambeau.cuda, "is_available", return_value=True),
    ):
        for name, build in WORKLOADS.items():
            if options.only and not any(each.search(name) for each in options.only):
                continue
            step = build(flambeau)
            taken, counted = measured(step, options.seconds)
            calls = ", ".join(f"{count} x {what}" for what, count in sorted(counted.items()))
            print(f"{name:<16}{taken:>12.1f} us   {calls}", flush=True)
            if options.profile:
                profile = cProfile.Profile()
                profile.runcall(lambda: [step() for _ in range(10)])  # noqa: B023
                pstats.Stats(profile).sort_stats("tottime").print_stats(options.profile)


if __name__ == "__main__":
    main()
