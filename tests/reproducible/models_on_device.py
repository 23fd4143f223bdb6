"""`python -m tests.reproducible.models_on_device`: whether samples of models give the same bits in any batch on a GPU.

At "batch" the results of a GPT, a ResNet and an LSTM, and the gradients that come back to the samples, are compared bit
by bit: the batch whole, in parts, each sample alone, and in another order. The program also says which products the
library computes and which generated kernels do, and how long each takes. Without a GPU the simulated device runs.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau._backends.cuda.arrays.array import form_of
from flambeau._backends.cuda.linalg import fixed_order
from flambeau._backends.cuda.runtime import trials
from flambeau._core.dtype import float32
from tests.support.simulated_cuda import install_simulated_device

benchmark: Any = importlib.import_module("benchmarks.reproducible")
Network = Callable[[Any], Any]


def _sequences(net: Any, layers: Callable[[Any], Any], samples: int, length: int) -> tuple[Network, Any]:
    tokens = torch.randint(0, 1000, (samples, length))
    return lambda x: net.head(layers(x)), net.tokens(tokens).detach()


def _gpt(samples: int, length: int, dtype: Any, width: int) -> tuple[Network, Any]:
    net = benchmark.Gpt(2, width).to(dtype)
    return _sequences(net, net.layers, samples, length)


def _lstm(samples: int, length: int) -> tuple[Network, Any]:
    net = benchmark.Lstm()
    return _sequences(net, lambda x: net.lstm(x)[0], samples, length)


def _resnet(samples: int, size: int) -> tuple[Network, Any]:
    return benchmark._resnet(), torch.randn(samples, 3, size, size)


MODELS: dict[str, Callable[[bool], tuple[Network, Any]]] = {
    "gpt": lambda small: _gpt(8, 12 if small else 128, torch.float32, 32 if small else 768),
    "gpt in bfloat16": lambda small: _gpt(8, 12 if small else 128, torch.bfloat16, 32 if small else 768),
    "resnet": lambda small: _resnet(8, 8 if small else 64),
    "lstm": lambda small: _lstm(8, 5 if small else 64),
}


def differences(net: Network, x: Any) -> list[str]:
    """In which batches samples give other results, or have other gradients."""
    torch.manual_seed(1)
    weights = torch.randn_like(net(x))

    def run(samples: Any) -> tuple[Any, Any]:
        given = x[samples].clone().requires_grad_()
        result = net(given)
        result.backward(weights[samples])
        return result.detach(), given.grad

    whole = run(slice(None))
    count = len(x)
    order = torch.arange(count - 1, -1, -1, device=x.device) * 3 % count
    batches = {"again": slice(None), "a part": slice(1, 4), "the rest": slice(4, count), "turned": order}
    batches |= {f"sample {number}": slice(number, number + 1) for number in range(count)}
    found = []
    for name, samples in batches.items():
        for what, one, other in zip(("result", "gradient"), run(samples), whole, strict=True):
            if not torch.equal(one, other[samples]):
                found.append(f"{name}: {what}")
    return found


PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], bool]] = {
    "8192x768 @ 768x3072": ((8192, 768), (768, 3072), True),
    "8192x3072 @ 3072x768": ((8192, 3072), (3072, 768), True),
    "8192x768 @ 768x768, as it lies": ((8192, 768), (768, 768), False),
    "8192x1000 @ 1000x768, as it lies": ((8192, 1000), (1000, 768), False),
    "192 times 512x64 @ 64x512": ((192, 512, 64), (192, 64, 512), True),
    "192 times 512x512 @ 512x64": ((192, 512, 512), (192, 512, 64), False),
    "512x128 @ 128x512": ((512, 128), (128, 512), True),
    "8x128 @ 128x512": ((8, 128), (128, 512), True),
}
SMALL_PRODUCTS = {"9x8 @ 8x7": ((9, 8), (8, 7), True)}


def ways(first: tuple[int, ...], second: tuple[int, ...], turned: bool) -> str:
    """Microseconds of the generated kernel, and of each of the library's ways.

    Behind these stands `=` for the same bits and `#` for others: of ordinary numbers, and of very small ones.
    """
    single = float32.numpy
    lies = (*second[:-2], second[-1], second[-2]) if turned else second
    left, right, target = form_of(first, single), form_of(lies, single), form_of((*first[:-1], second[-1]), single)
    if turned:
        right = right.swapaxes(-1, -2)
    generated = fixed_order._generated(target, left, right, False, False)
    with trials._trying(trials.Buffers(single, target.size, (left.size, right.size))) as arrays:
        assert arrays is not None
        own = f"{_timed(arrays, generated):.0f}"
        calls = fixed_order._library_calls(fixed_order._given(left, right, False), "multiply")
        return " ".join([own, *[_judged(arrays, generated, each) for each in calls]])


def _judged(arrays: list[Any], generated: Any, call: Any) -> str:
    try:
        alike = [trials._agree(arrays[0], arrays[1], arrays[2:], generated, call, scale) for scale in trials._SCALES]
        return f"{_timed(arrays, call):.0f}{''.join('=' if each else '#' for each in alike)}"
    except fixed_order._REFUSALS as error:
        return f"({error})"


def _timed(arrays: list[Any], call: Any) -> float:
    places = [each.pointer for each in arrays[1:]]
    call(*places)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        call(*places)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e5


def main() -> None:
    """Print a line for each product and each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="for the simulated device")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        install_simulated_device()
    torch.reproducible("batch")
    with torch.device("cuda"):
        torch.zeros(1)
        for name, given in SMALL_PRODUCTS.items() if options.small else PRODUCTS.items():
            print(f"{name:36}{ways(*given)}", flush=True)
        for name, make in MODELS.items():
            torch.manual_seed(0)
            begin = time.perf_counter()
            found = differences(*make(options.small))
            print(f"{name:36}{'; '.join(found) or 'the same bits'}, {time.perf_counter() - begin:.1f} s", flush=True)
    quick = [getattr(call, "__qualname__", "") for call in fixed_order._quick.values()]
    own = sum("_generated" in each for each in quick)
    print(f"{len(quick)} products of these were tried, {own} of them are computed by generated kernels")


if __name__ == "__main__":
    main()
