"""A program whose digests have to be the same on every machine: `python -m tests.reproducible.portable_program`.

It needs neither PyTorch nor llvmlite, so that it runs under an emulator of another processor. `--steps` trains the
networks of `trained.py` as well.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import flambeau
from flambeau import nn

from .trained import NETWORKS, train

F = nn.functional


def _numbers(*shape: int) -> Any:
    return flambeau.randn(*shape).requires_grad_()


def _layers() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Layers with inputs: what each kernel of `_codegen/on_numpy` does, with odd sizes."""
    x = _numbers(3, 5, 37)
    yield "softmax", lambda x: x.softmax(-1) * x.log_softmax(1), [x]
    yield "norms", lambda x, w: F.layer_norm(x, (37,), w) + F.rms_norm(x, (37,), w), [x, _numbers(37)]
    yield "long norm", lambda x: F.layer_norm(x, (2100,)), [_numbers(2, 2100)]
    yield "group_norm", lambda x, w: F.group_norm(x, 2, w, w), [_numbers(2, 6, 5, 7), _numbers(6)]
    yield "linear", F.linear, [x, _numbers(11, 37), _numbers(11)]
    yield "double", F.linear, [_numbers(4, 9).double().detach().requires_grad_(), _numbers(5, 9).double()]
    yield "matmul", lambda a, b: a @ b, [_numbers(2, 7, 13), _numbers(2, 13, 4)]
    image = _numbers(3, 4, 9, 11)
    for stride, dilation, groups in ((1, 1, 1), (2, 1, 2), (1, 2, 1), (2, 1, 4)):
        conv = partial(F.conv2d, stride=stride, padding=1, dilation=dilation, groups=groups)
        yield f"conv2d {stride} {dilation} {groups}", conv, [image, _numbers(8, 4 // groups, 3, 3), _numbers(8)]
    planes = _numbers(2, 3, 21, 19)
    for size, stride in ((3, 1), (5, 2), (7, 1)):
        conv = partial(F.conv2d, stride=stride, padding=size // 2, groups=3)
        yield f"depthwise {size} {stride}", conv, [planes, _numbers(3, 1, size, size), _numbers(3)]
    last = planes.detach().to(memory_format=flambeau.channels_last).requires_grad_()
    yield "depthwise, channels last", partial(F.conv2d, padding=2, groups=3), [last, _numbers(3, 1, 5, 5)]
    statistics = flambeau.randn(3), flambeau.rand(3) + 0.1
    for name, image_ in (("planes", planes), ("lines", last), ("matrix", _numbers(150, 3))):
        yield (
            f"batch_norm, {name}",
            lambda x, w, b: F.batch_norm(x, *statistics, w, b),
            [image_, _numbers(3), _numbers(3)],
        )
    yield "conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, None, 2, 1), [image, _numbers(4, 5, 3, 3)]
    yield "pools", lambda x: F.max_pool2d(x, 3, 2).sum() + F.avg_pool2d(x, 3, 2), [image]
    heads = [_numbers(2, 3, 40, 8) for _ in range(3)]
    yield "attention", F.scaled_dot_product_attention, heads
    yield "causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), heads
    mask = flambeau.zeros(40, 40).masked_fill(flambeau.arange(40) > 30, float("-inf"))
    yield "masked", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask), heads
    for name, layer in (("lstm", nn.LSTM(5, 6, 2)), ("gru", nn.GRU(5, 6, bidirectional=True)), ("rnn", nn.RNN(5, 6))):
        yield name, partial(_first, layer), [_numbers(7, 3, 5)]
    embedded = flambeau.arange(12).view(3, 4) % 5
    yield "embedding", lambda w: F.embedding(embedded, w), [_numbers(6, 9)]
    classes = flambeau.arange(5) % 3
    yield "losses", lambda x: F.cross_entropy(x, classes) + F.huber_loss(x, x.detach() * 0.5), [_numbers(5, 37)]
    yield "bfloat16", lambda x: (x.bfloat16() * 1.7).tanh().float() @ flambeau.ones(37), [x]
    yield "functions", _functions, [_numbers(300)]
    yield "doubles", _functions, [_numbers(60).double().detach().requires_grad_()]
    yield "sums", lambda x: x.sum() + x.mean((0, 1)) + x.std(-1, keepdim=True) + x.cumsum(0) + x.norm(3), [x]
    yield "scatter", lambda x: x.scatter_add(0, flambeau.arange(185).view(5, 37) % 5, x), [_numbers(5, 37)]


def _first(layer: nn.Module, x: Any) -> Any:
    return layer(x)[0]


def _functions(x: Any) -> Any:
    one = x.exp() + x.sin() * x.cos() + x.tanh() + x.sigmoid() + F.gelu(x) + F.silu(x) + F.softplus(x) + x.erf()
    other = x.abs() + 0.1
    two = other.log() + other.log1p() + other.pow(1.7) + other.sqrt() + x.atan() + x.sinh() + x.expm1() + other.lgamma()
    return one + two + flambeau.logaddexp(x, other) + flambeau.hypot(x, other) + flambeau.atan2(x, other)


def _digest(arrays: list[Any]) -> str:
    digest = hashlib.sha256()
    for each in arrays:
        digest.update(np.ascontiguousarray(each.detach().numpy()).tobytes())
    return digest.hexdigest()[:16]


def digests() -> dict[str, str]:
    """The digests of results and gradients of layers, and of random numbers."""
    found = {}
    flambeau.manual_seed(0)
    for name, layer, given in _layers():
        result = layer(*given)
        wanted = [each for each in given if each.requires_grad]
        gradients = flambeau.autograd.grad(result, wanted, flambeau.randn(result.shape).to(result.dtype))
        found[name] = _digest([result, *gradients])
    drawn = [flambeau.randn(37), flambeau.randn(5, dtype=flambeau.float64), flambeau.rand(5), flambeau.randperm(9)]
    drawn += [flambeau.empty(40).exponential_(), flambeau.empty(40).log_normal_(), flambeau.empty(40).cauchy_()]
    found["random"] = _digest(drawn + [flambeau.arange(0.1, 2.0, 0.07), flambeau.linspace(0.1, 3, 17)])
    return found


def main() -> None:
    """Print the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    options = parser.parse_args()
    with flambeau.reproducible("machine"):
        if not options.steps:
            for name, digest in digests().items():
                print(f"{name}: {digest}", flush=True)
            return
        for kind in options.networks:
            begin = time.perf_counter()
            print(f"{kind}: {train(kind, options.steps)}  {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
