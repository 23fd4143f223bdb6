"""What Python does in a step on a GPU, and nothing else: the steps of `train_steps.py`, on a device that does nothing.

No GPU is needed (see `tests/support/idle_cuda.py`): what is left is the time that a GPU waits for its next kernel, of
which there is one for each call of the driver. The calls of Python functions are counted too: that number does not
depend on the load of the machine.

Networks are run in several states: training as they are, training under autocast from float32 weights, and the forward
pass alone in `no_grad` and in `inference_mode`. GPT-2 of transformers is measured too where that is installed. With
`--zoo` the models of `zoo.py --large` take their place, in training and in inference under autocast.

python benchmarks/cuda_host.py
python benchmarks/cuda_host.py --zoo --only 'gpt2|convnext'
python benchmarks/cuda_host.py --only ResNet Llama --states plain autocast --profile 40
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import pstats
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _train_steps import cuda as steps
from _train_steps import networks
from _train_steps.workloads import training_step
from _zoo.child import Case
from _zoo.large import LARGE

import flambeau
from tests.support.idle_cuda import idle_device

COUNTED: dict[str, int] = {}


def _count(what: str, which: str) -> None:
    COUNTED[what] = COUNTED.get(what, 0) + 1


Forward = tuple[Any, Callable[[], Any]]
"""A network, and its loss on the data of the benchmark."""


def _resnet(torch: Any, dtype: Any) -> Forward:
    """ResNet-50 on two images of 64x64: the sizes do not matter here."""
    model = networks.residual(torch, True, (3, 4, 6, 3)).to("cuda", dtype).to(memory_format=torch.channels_last)
    images = torch.randn(2, 3, 64, 64).to("cuda", dtype).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (2,)).cuda()
    return model, lambda: torch.nn.functional.cross_entropy(model(images), labels)


def _gpt(torch: Any, dtype: Any) -> Forward:
    model = networks.gpt(torch, 1000, 64, 4, 12, 128).to("cuda", dtype)
    ids = torch.randint(0, 1000, (2, 129)).cuda()
    given, wanted = ids[:, :-1], ids[:, 1:].reshape(-1)
    return model, lambda: torch.nn.functional.cross_entropy(model(given).view(-1, 1000), wanted)


def _llama(torch: Any, dtype: Any) -> Forward:
    model = networks.llama(torch, 1000, 64, 128, 4, 2, 16).to("cuda", dtype)
    ids = torch.randint(0, 1000, (1, 64)).cuda()
    return model, lambda: model(ids).float().mean()


def _transformers_gpt(torch: Any, dtype: Any) -> Forward:
    flambeau.stand_in_for_torch()
    transformers = importlib.import_module("transformers")
    config = transformers.GPT2Config(vocab_size=1000, n_embd=64, n_head=4, n_layer=12, n_positions=128)
    model = transformers.GPT2LMHeadModel(config).to("cuda", dtype)
    ids = torch.randint(0, 1000, (2, 128)).cuda()
    return model, lambda: model(ids, labels=ids).loss


def _in_state(build: Callable[[Any, Any], Forward], state: str) -> Callable[[Any], Callable[[], Any]]:
    """The step of a network in one of the states: see the module's description."""

    def made(torch: Any) -> Callable[[], Any]:
        model, loss = build(torch, torch.float32 if state == "autocast" else torch.bfloat16)
        if state in ("plain", "autocast"):
            context = torch.autocast("cuda", torch.bfloat16, enabled=state == "autocast")
            optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
            return training_step(model, optimizer, context(loss))
        return (torch.no_grad() if state == "no_grad" else torch.inference_mode())(loss)

    return made


def _op(function: Callable[..., Any]) -> Callable[[Any], Callable[[], Any]]:
    def build(torch: Any) -> Callable[[], Any]:
        x, y = torch.randn(16, 16).cuda(), torch.randn(16, 16).cuda()
        return lambda: function(torch, x, y)

    return build


STATES = ("plain", "autocast", "no_grad", "inference")
NETWORKS = {
    "ResNet-50": _resnet, "GPT-2": _gpt, "Llama": _llama, "GPT-2 of transformers": _transformers_gpt
}  # fmt: skip
WORKLOADS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    **{
        f"{name}, {state}": _in_state(build, state)
        for name, build in NETWORKS.items()
        for state in STATES
        if build is not _transformers_gpt or importlib.util.find_spec("transformers")
    },
    "convnet": steps.train_convnet, "MLP": steps.train_mlp, "LSTM": steps.train_lstm,
    "x + y": _op(lambda t, x, y: x + y), "x * 2": _op(lambda t, x, y: x * 2), "relu": _op(lambda t, x, y: x.relu()),
    "sum": _op(lambda t, x, y: x.sum()), "softmax": _op(lambda t, x, y: x.softmax(1)),
    "x @ y": _op(lambda t, x, y: x @ y),
}  # fmt: skip


def _of_zoo(name: str, trains: bool) -> Callable[[Any], Callable[[], Any]]:
    def build(torch: Any) -> Callable[[], Any]:
        flambeau.stand_in_for_torch()
        step: Callable[[], Any] = Case(torch, "cuda", LARGE[name], trains, True, lambda model: model).step
        return step

    return build


ZOO: dict[str, Callable[[Any], Callable[[], Any]]] = {
    f"{name}, {'training' if trains else 'forward pass'}": _of_zoo(name, trains)
    for name in LARGE
    for trains in (True, False)
}


def python_calls(step: Callable[[], Any]) -> int:
    """How many Python functions a step calls."""
    count = -1  # without the step itself

    def notice(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(notice)
    try:
        step()
    finally:
        sys.setprofile(None)
    return count


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
    parser.add_argument("--states", nargs="+", choices=STATES, default=STATES, help="of networks (all)")
    parser.add_argument("--zoo", action="store_true", help="the models of zoo.py, as large as they are published")
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring each (2)")
    parser.add_argument("--profile", type=int, default=0, metavar="LINES", help="print the functions that take longest")
    options = parser.parse_args()
    with idle_device(_count):
        for name, build in (ZOO if options.zoo else WORKLOADS).items():
            state = name.rpartition(", ")[2]
            if state in STATES and state not in options.states:
                continue
            if options.only and not any(each.search(name) for each in options.only):
                continue
            try:
                step = build(flambeau)
            except ImportError as error:  # a library without something that it wants
                print(f"{name:<34} {error}")
                continue
            taken, counted = measured(step, options.seconds)
            calls = ", ".join(f"{count} x {what}" for what, count in sorted(counted.items()))
            print(f"{name:<34}{taken:>12.1f} us {python_calls(step):>8} Python calls   {calls}", flush=True)
            if options.profile:
                profile = cProfile.Profile()
                profile.runcall(lambda: [step() for _ in range(10)])  # noqa: B023
                pstats.Stats(profile).sort_stats("tottime").print_stats(options.profile)


if __name__ == "__main__":
    main()
