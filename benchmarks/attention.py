"""Training steps of GPT-2 (124 million parameters) on a GPU, its attention written in three ways, beside PyTorch.

python benchmarks/attention.py
python benchmarks/attention.py --generated

Eight sequences of 1024 tokens under bfloat16 autocast, AdamW, weights in float32; a step ends with `loss.item()`. The
three ways are those that programs have: `split` and `view`, `permute` and `unbind`, `einsum` with a softmax. Each line
says what a step takes, eager and compiled (`torch.compile(model)`), tokens in a second, and which part of the GPU's
peak of dense bfloat16 products they are (`--peak`, in TFLOP/s). Single calls of attention follow. With `--generated`
cuDNN's front end is not used, as where it is not installed: then the kernels are Flambeau's own.
"""

from __future__ import annotations

import importlib
import statistics
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import _measure
from _train_steps import networks
from _train_steps.workloads import training_step

_BATCH, _LENGTH, _WIDTH, _HEADS, _LAYERS, _VOCABULARY = 8, 1024, 768, 12, 12, 50257


def _by_split(torch: Any, qkv: Any, heads: int) -> Any:
    batch, length, _ = qkv.shape
    width = qkv.shape[2] // 3
    query, key, value = (
        each.view(batch, length, heads, width // heads).transpose(1, 2) for each in qkv.split(width, 2)
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).contiguous().view(batch, length, width)


def _by_einsum(torch: Any, qkv: Any, heads: int) -> Any:
    batch, length, _ = qkv.shape
    width = qkv.shape[2] // 3
    query, key, value = (each.reshape(batch, length, heads, width // heads) for each in qkv.chunk(3, dim=-1))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) * (width // heads) ** -0.5
    hidden = torch.ones(length, length, dtype=torch.bool, device=qkv.device).triu(1)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, value).reshape(batch, length, width)


WAYS = {"split": _by_split, "permute": networks.permuted_attention, "einsum": _by_einsum}


def _step(torch: Any, attend: Any, compiled: bool) -> Callable[[], float]:
    torch.manual_seed(0)
    model = networks.gpt(torch, _VOCABULARY, _WIDTH, _HEADS, _LAYERS, _LENGTH, attend).cuda()
    model.head.weight = model.embedding.weight
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ids = torch.randint(0, _VOCABULARY, (_BATCH, _LENGTH + 1)).cuda()
    given, wanted = ids[:, :-1], ids[:, 1:].reshape(-1)
    called = torch.compile(model) if compiled else model

    def loss() -> Any:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return torch.nn.functional.cross_entropy(called(given).view(-1, _VOCABULARY), wanted)

    step = training_step(model, optimizer, loss)
    return lambda: float(step().detach())


def _milliseconds(runs: list[Callable[[], Any]], rounds: int, calls: int) -> list[float]:
    """Of a call, in the middle of rounds that take turns; each run ends with a wait for the device."""
    for run in runs:
        for _ in range(6):
            run()
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for times, run in zip(taken, runs, strict=True):
            start = perf_counter()
            for _ in range(calls):
                run()
            times.append(1e3 * (perf_counter() - start) / calls)
    return [statistics.median(times) for times in taken]


def _single(torch: Any, width: int, causal: bool) -> Callable[[], None]:
    """Ten calls of attention with their gradients."""
    torch.manual_seed(0)
    heads = 768 // width
    operands = [torch.randn(8, heads, 1024, width).to("cuda", torch.bfloat16).requires_grad_() for _ in range(3)]
    grad = torch.randn(8, heads, 1024, width).to("cuda", torch.bfloat16)

    def run() -> None:
        for _ in range(10):
            mixed = torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=causal)
            torch.autograd.grad(mixed, operands, grad)
        torch.cuda.synchronize()

    return run


def main() -> int:
    parser = _measure.parser(__doc__ or "", "ways whose names match")
    parser.add_argument("--generated", action="store_true", help="without cuDNN's front end")
    parser.add_argument("--peak", type=float, default=989.0, help="TFLOP/s of dense bfloat16 products")
    options = parser.parse_args()
    flambeau, torch = _measure.load("flambeau"), _measure.load("torch")
    if not flambeau.cuda.is_available():
        print("this benchmark needs a GPU")
        return 0
    if options.generated:
        frontend: Any = importlib.import_module("flambeau._backends.cuda.cudnn.frontend")
        frontend.library = lambda: None
    rounds, calls = (4, 5) if options.quick else (10, 10)
    tokens = _BATCH * _LENGTH
    work = tokens * (6 * 124e6 + 6 * _LAYERS * _LENGTH * _WIDTH)
    """Of a step, in floating-point operations: six for each weight and token, and causal attention."""
    found: dict[str, Any] = {}
    columns = "PyTorch", "Flambeau", "compiled", "ratio", "ratio", "tokens/s", "of peak"
    print(f"{'GPT-2, step, ms':24}" + "".join([f"{each:>10}" for each in columns]))
    for name, attend in WAYS.items():
        if not options.only.search(name):
            continue
        runs = [_step(torch, attend, False), _step(flambeau, attend, False), _step(flambeau, attend, True)]
        theirs, ours, compiled = _milliseconds(runs, rounds, calls)
        found[name] = {"PyTorch": theirs, "Flambeau": ours, "compiled": compiled}
        share = work / (ours * 1e-3) / (options.peak * 1e12)
        print(
            f"{name:24}{theirs:10.2f}{ours:10.2f}{compiled:10.2f}{ours / theirs:10.2f}{compiled / theirs:10.2f}"
            f"{tokens / ours * 1e3:10.0f}{share:10.1%}",
            flush=True,
        )
    print(f"{'attention, both ways, ms':24}{'PyTorch':>10}{'Flambeau':>10}{'ratio':>10}")
    for width in (64, 96, 128):
        for causal in (True, False):
            name = f"8x{768 // width}x1024x{width}{', causal' * causal}"
            theirs, ours = (
                each / 10
                for each in _milliseconds([_single(each, width, causal) for each in (torch, flambeau)], rounds, calls)
            )
            found[name] = {"PyTorch": theirs, "Flambeau": ours}
            print(f"{name:24}{theirs:10.3f}{ours:10.3f}{ours / theirs:10.2f}", flush=True)
    _measure.write_json(options.json, {"attention": found, "generated": options.generated})
    return 0


if __name__ == "__main__":
    sys.exit(main())
