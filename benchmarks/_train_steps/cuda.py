"""The steps on a GPU: both frameworks in one process, in bursts that take turns, each burst ended by a wait.

What is measured are functions of the module that plays `torch`, as in `workloads.py`. Models are made on the CPU, where
both frameworks draw the same numbers, and moved.
"""

from __future__ import annotations

import gc
import importlib
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import _measure

from . import networks
from .workloads import Step, training_step

Build = Callable[[Any], Step]


@dataclass(frozen=True)
class Workload:
    """A named step; `work` is what it moves or computes, in units of which there are 10^12 in a `unit`."""

    name: str
    build: Build
    tolerance: float = 0.05
    work: float = 0.0
    unit: str = ""


def _moved(torch: Any, model: Any, *to: Any) -> Any:
    torch.manual_seed(0)
    return model().to("cuda", *to)


# ----- training -------------------------------------------------------------------------------------------------------


def train_mlp(torch: Any, **options: Any) -> Step:
    """Adam on a batch of 64."""
    model = _moved(torch, lambda: networks.mlp(torch))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, **options)
    images, labels = torch.randn(64, 784).cuda(), torch.randint(0, 10, (64,)).cuda()
    return training_step(model, optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels))


def train_convnet(torch: Any) -> Step:
    """SGD on a batch of 512 images of 28x28."""
    model = _moved(torch, lambda: networks.convnet(torch))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.5)
    images, labels = torch.randn(512, 1, 28, 28).cuda(), torch.randint(0, 10, (512,)).cuda()
    return training_step(model, optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels))


def train_resnet(bottleneck: bool, counts: tuple[int, ...]) -> Build:
    """SGD on 128 images of 224x224, in bfloat16 with the channels innermost."""

    def build(torch: Any) -> Step:
        model = _moved(torch, lambda: networks.residual(torch, bottleneck, counts), torch.bfloat16)
        model = model.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        images = torch.randn(128, 3, 224, 224).to("cuda", torch.bfloat16).to(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (128,)).cuda()
        return training_step(model, optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels))

    return build


def train_gpt(torch: Any) -> Step:
    """AdamW on 8 sequences of 1024 tokens, in bfloat16: the sizes of GPT-2."""
    model = _moved(torch, lambda: networks.gpt(torch, 50257, 768, 12, 12, 1024), torch.bfloat16)
    model.head.weight = model.embedding.weight
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ids = torch.randint(0, 50257, (8, 1025)).cuda()
    given, wanted = ids[:, :-1], ids[:, 1:].reshape(-1)
    return training_step(
        model, optimizer, lambda: torch.nn.functional.cross_entropy(model(given).view(-1, 50257), wanted)
    )


def train_lstm(torch: Any) -> Step:
    """Adam on 64 sequences of 64 steps, two layers of 512."""
    nn = torch.nn

    def make() -> Any:
        return nn.ModuleList([nn.LSTM(128, 512, 2), nn.Linear(512, 10)])

    model = _moved(torch, make)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    steps, labels = torch.randn(64, 64, 128).cuda(), torch.randint(0, 10, (64,)).cuda()
    return training_step(
        model, optimizer, lambda: nn.functional.cross_entropy(model[1](model[0](steps)[0][-1]), labels)
    )


def train_with_batch_norm(torch: Any) -> Step:
    """SGD on a batch of 64 images of 28x28."""
    nn = torch.nn

    def make() -> Any:
        layers = [nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 11 * 11, 10)]
        return nn.Sequential(*layers)

    model = _moved(torch, make)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    images, labels = torch.randn(64, 1, 28, 28).cuda(), torch.randint(0, 10, (64,)).cuda()
    return training_step(model, optimizer, lambda: nn.functional.cross_entropy(model(images), labels))


def _captured(build: Callable[..., Step], **options: Any) -> Build:
    """Flambeau's step as a graph, with what a graph needs of it; PyTorch's is the plain one."""

    def built(torch: Any) -> Step:
        ours = torch.__name__ == "flambeau"
        step = build(torch, **options) if ours else build(torch)
        for _ in range(3):  # what happens only the first times; both losses go on from the same weights
            step()
        if not ours:
            return step
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step()

        def replay() -> Any:
            graph.replay()
            return loss

        vars(replay)["step"] = step  # the graph reads its inputs from where they are
        return replay

    return built


def run_llama(torch: Any) -> Step:
    """A thousand million parameters and more, forward alone, 2048 tokens in bfloat16."""
    model = _moved(torch, lambda: networks.llama(torch, 32000, 2048, 8192, 32, 8, 16), torch.bfloat16)
    ids = torch.randint(0, 32000, (1, 2048)).cuda()

    def step() -> Any:
        with torch.no_grad():
            return model(ids).float().mean()

    return step


def step_adamw(torch: Any) -> Step:
    """One update of 124 million parameters."""
    torch.manual_seed(0)
    shapes = [(50257, 768), (1024, 768), *[(768, 768)] * 48, *[(3072, 768)] * 24, *[(768,)] * 74]
    params = [torch.ones(shape, device="cuda", requires_grad=True) for shape in shapes]
    for each in params:
        each.grad = torch.full_like(each, 0.5)
    optimizer = torch.optim.AdamW(params, 1e-3)

    def step() -> Any:
        optimizer.step()
        return params[-1].detach().sum()

    return step


# ----- single ops -----------------------------------------------------------------------------------------------------


def _op(function: Callable[..., Any], dtype: str, *shapes: tuple[int, ...]) -> Build:
    def build(torch: Any) -> Step:
        torch.manual_seed(0)
        given = [torch.rand(shape, device="cuda", dtype=getattr(torch, dtype)) for shape in shapes]
        return lambda: function(torch, *given)

    return build


_MANY = (10**8,)
_ROWS = (10**4, 10**4)
_SQUARE = (8192, 8192)
_FEW = (16, 16)


def _single_ops() -> list[Workload]:
    found = []
    for dtype, size in (("float32", 4), ("bfloat16", 2)):
        name = f"10^8 elements, {dtype}"
        hundred = 1e8 * size
        found += [
            Workload(f"add, {name}", _op(lambda t, x, y: x + y, dtype, _MANY, _MANY), work=3 * hundred, unit="TB/s"),
            Workload(f"gelu, {name}", _op(lambda t, x: t.nn.functional.gelu(x), dtype, _MANY), work=2 * hundred,
                     unit="TB/s"),
            Workload(f"sum, {name}", _op(lambda t, x: x.sum(), dtype, _MANY), work=hundred, unit="TB/s"),
            Workload(f"sum of columns, {name}", _op(lambda t, x: x.sum(0), dtype, _ROWS), work=hundred, unit="TB/s"),
            Workload(f"softmax of rows, {name}", _op(lambda t, x: x.softmax(1), dtype, _ROWS), work=2 * hundred,
                     unit="TB/s"),
            Workload(f"layer_norm, {name}", _op(lambda t, x: t.nn.functional.layer_norm(x, (1000,)), dtype,
                     (10**5, 1000)), work=2 * hundred, unit="TB/s"),
            Workload(f"transposed copy, {name}", _op(lambda t, x: x.t().contiguous(), dtype, _ROWS), work=2 * hundred,
                     unit="TB/s"),
            Workload(f"product of 8192, {dtype}", _op(lambda t, x, y: x @ y, dtype, _SQUARE, _SQUARE), work=2 * 8192**3,
                     unit="TFLOP/s"),
        ]  # fmt: skip
    tiny: dict[str, Callable[..., Any]] = {
        "x + y": lambda t, x, y: x + y, "x * 2": lambda t, x, y: x * 2.0, "x.relu()": lambda t, x, y: x.relu(),
        "x.sum()": lambda t, x, y: x.sum(), "x.softmax(1)": lambda t, x, y: x.softmax(1),
        "x @ y": lambda t, x, y: x @ y,
    }  # fmt: skip
    return found + [Workload(f"{name}, 16x16", _op(each, "float32", _FEW, _FEW)) for name, each in tiny.items()]


NETWORKS = [
    Workload("ResNet-18, 224x224, batch 128, bfloat16", train_resnet(False, (2, 2, 2, 2))),
    Workload("ResNet-50, 224x224, batch 128, bfloat16", train_resnet(True, (3, 4, 6, 3))),
    Workload("GPT-2, 8 x 1024 tokens, bfloat16", train_gpt),
    Workload("Llama 1B forward, 2048 tokens, bfloat16", run_llama, tolerance=10.0),
    Workload("LSTM, 64 x 64 steps", train_lstm),
    Workload("convnet, batch 512", train_convnet),
    Workload("MLP, batch 64", train_mlp),
    Workload("MLP, batch 64, captured", _captured(train_mlp, capturable=True)),
    Workload("batch norm, batch 64, captured", _captured(train_with_batch_norm)),
    Workload("convnet, batch 512, captured", _captured(train_convnet)),
    Workload("AdamW, 124 million parameters", step_adamw, work=124e6 * 28, unit="TB/s"),
]
WORKLOADS = [*NETWORKS, *_single_ops()]


# ----- measuring ------------------------------------------------------------------------------------------------------


def burst(step: Step, wait: Callable[[], object], calls: int) -> float:
    """Seconds that calls of a step take, the wait for the last one included."""
    start = perf_counter()
    for _ in range(calls):
        step()
    wait()
    return perf_counter() - start


def host_time(step: Step, wait: Callable[[], object], calls: int) -> float:
    """Seconds until a step has given all its work to a device that had none: the middle of some calls."""
    taken = []
    for _ in range(calls):
        wait()
        start = perf_counter()
        step()
        taken.append(perf_counter() - start)
    wait()
    return statistics.median(taken)


def device_time(step: Step, wait: Callable[[], object], calls: int) -> float:
    """Seconds that the device is busy with a step, whichever framework it is of: PyTorch's profiler sees both."""
    profiler = importlib.import_module("torch.profiler")
    wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks of cycles of which there is one
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as found:
            for _ in range(calls):
                step()
            wait()
        return float(sum(each.self_device_time_total for each in found.key_averages())) / 1e6 / calls


def measured(workload: Workload, rounds: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of both frameworks, after their results were compared, and their ratio.

    Beside them what the host needs to give a step to the device, and what the device needs for it: whichever is longer
    decides, and a host that has other things to do is seen.
    """
    frameworks = [importlib.import_module(name) for name in _measure.FRAMEWORKS]
    steps = [workload.build(each) for each in frameworks]
    for _ in range(2):  # a second loss is right only if the first step's gradients were
        results = [float(step().detach().float().mean()) for step in steps]
    if not abs(results[0] - results[1]) <= workload.tolerance * max(abs(results[1]), 1e-3):
        return {"name": workload.name, "status": f"differs: {results}", "ratio": None}
    bursts = [partial(burst, step, each.cuda.synchronize) for step, each in zip(steps, frameworks, strict=True)]
    ours, theirs = _measure.alternate_bursts(bursts, rounds, seconds)
    row = {
        "name": workload.name, "status": "measured", "flambeau_ms": ours.median / 1e3,
        "pytorch_ms": theirs.median / 1e3, "ratio": ours.median / theirs.median, "flambeau_best_ms": ours.best / 1e3,
        "pytorch_best_ms": theirs.best / 1e3, "best_ratio": ours.best / theirs.best,
    }  # fmt: skip
    for prefix, step, each in zip(("flambeau", "pytorch"), steps, frameworks, strict=True):
        row[f"{prefix}_host_ms"] = host_time(step, each.cuda.synchronize, 2 * rounds + 1) * 1e3
        row[f"{prefix}_device_ms"] = device_time(step, each.cuda.synchronize, 3) * 1e3
    if workload.work:
        row |= {"rate": workload.work / (ours.median * 1e6), "unit": workload.unit}
    return row


def table(chosen: list[Workload], quick: bool, rows: list[dict[str, Any]], save: Callable[[], None]) -> None:
    """Measure, print and save line by line; then the summary."""
    print(f"{'':<44}{'a step, ms':>22}{'':>9}{'quickest round':>29}{'host alone':>20}{'device alone':>20}")
    pair = f"{'Flambeau':>10}{'PyTorch':>10}"
    print(f"{'workload':<44}{'Flambeau':>11}{'PyTorch':>11}{'ratio':>9}{pair}{'ratio':>9}{pair}{pair}", flush=True)
    frameworks = [importlib.import_module(name) for name in _measure.FRAMEWORKS]
    for workload in chosen:
        single = workload not in NETWORKS
        try:
            row = measured(workload, *((5, 0.1) if quick or single else (25, 0.2)))
        except Exception as error:  # whatever it is, the others are measured
            row = {"name": workload.name, "status": f"failed ({type(error).__name__}: {error})", "ratio": None}
        if row["ratio"] is None:
            print(f"{workload.name:<44}{str(row['status']).splitlines()[0]:.150}", flush=True)
        else:
            rate = f"   {row['rate']:.2f} {row['unit']}" if workload.work else ""
            times = f"{row['flambeau_ms']:>11.4f}{row['pytorch_ms']:>11.4f}{row['ratio']:>9.3f}"
            for what in ("best", "host", "device"):
                times += f"{row[f'flambeau_{what}_ms']:>10.3f}{row[f'pytorch_{what}_ms']:>10.3f}"
                times += f"{row['best_ratio']:>9.3f}" if what == "best" else ""
            print(f"{workload.name:<44}{times}{rate}", flush=True)
        rows.append(row)
        save()
        gc.collect()
        for each in frameworks:
            each.cuda.empty_cache()
    _measure.print_summary({row["name"]: row["ratio"] for row in rows if row["ratio"] is not None})
