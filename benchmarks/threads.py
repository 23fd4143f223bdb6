"""How the ops that networks are made of speed up with the number of threads, beside PyTorch.

python benchmarks/threads.py
python benchmarks/threads.py --threads 2 16 --only 'depthwise|batch_norm' --seconds 0.2
python benchmarks/threads.py --list

Each framework has a process of its own; they take turns, op by op, and the one that waits sleeps. A line says: the op,
forward or with its gradients, microseconds of Flambeau and of PyTorch with each number of threads, their ratio with the
most threads, and the number of threads with which Flambeau was quickest. Ops that more threads make slower come last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import _measure

Tensors = list[Any]
Case = tuple[Callable[[Any], Tensors], Callable[..., Any]]
"""What makes the arguments of an op, and the op, called with the framework and these."""


def _random(*shapes: tuple[int, ...]) -> Callable[[Any], Tensors]:
    return lambda torch: [torch.randn(*shape) * 0.1 for shape in shapes]


def _linear(rows: int, inner: int, columns: int) -> Case:
    made = _random((rows, inner), (columns, inner), (columns,))
    return made, lambda torch, x, weight, bias: torch.nn.functional.linear(x, weight, bias)


def _conv(batch: int, inputs: int, size: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> Case:
    made = _random((batch, inputs, size, size), (outputs, inputs // groups, kernel, kernel))
    pad = kernel // 2
    return made, lambda torch, x, weight: torch.nn.functional.conv2d(x, weight, None, stride, pad, 1, groups)


def _depthwise(channels: int, size: int, kernel: int, stride: int = 1, batch: int = 4) -> Case:
    return _conv(batch, channels, size, channels, kernel, stride, channels)


def _batch_norm(*shape: int) -> Case:
    channels = (shape[1],)
    return _random(shape, channels, channels), lambda torch, x, weight, bias: torch.nn.functional.batch_norm(
        x, None, None, weight, bias, True
    )


def _layer_norm(*shape: int) -> Case:
    width = (shape[-1],)
    return _random(shape, width, width), lambda torch, x, weight, bias: torch.nn.functional.layer_norm(
        x, width, weight, bias
    )


def _of(op: Callable[..., Any], *shapes: tuple[int, ...]) -> Case:
    return _random(*shapes), op


def _cases() -> Iterator[tuple[str, Case]]:
    for rows, inner, columns in (
        (68, 192, 576), (788, 192, 768), (788, 768, 192), (2048, 196, 256), (2048, 256, 196), (784, 512, 2048),
        (12544, 40, 160), (12544, 160, 40), (784, 160, 640), (16, 320, 1280), (3136, 192, 576), (4, 2048, 1000),
        (1024, 1024, 1024),
    ):  # fmt: skip
        yield f"linear {rows}x{inner}x{columns}", _linear(rows, inner, columns)
    for numbers in (
        (4, 3, 224, 64, 7, 2), (4, 64, 56, 64, 3), (4, 64, 56, 256, 1), (4, 256, 56, 64, 1), (4, 128, 56, 128, 3, 2),
        (4, 512, 7, 512, 3), (4, 2048, 7, 512, 1), (4, 64, 16, 64, 3), (4, 256, 16, 64, 1), (4, 512, 2, 512, 3),
        (4, 512, 2, 2048, 1), (4, 3, 224, 96, 4, 4), (4, 24, 56, 144, 1),
    ):  # fmt: skip
        yield "conv " + "x".join(map(str, numbers)), _conv(*numbers)
    for depthwise in ((40, 56, 7), (80, 28, 7), (320, 7, 7), (40, 16, 7), (320, 2, 7), (96, 112, 3, 2), (32, 112, 3),
                      (144, 56, 5, 2), (672, 14, 5), (1152, 7, 3), (480, 4, 5)):  # fmt: skip
        yield "depthwise " + "x".join(map(str, depthwise)), _depthwise(*depthwise)
    for images in ((4, 64, 112, 112), (4, 256, 56, 56), (4, 2048, 7, 7), (4, 64, 16, 16), (4, 512, 2, 2)):
        yield f"batch_norm {'x'.join(map(str, images))}", _batch_norm(*images)
    for shape in ((4, 197, 192), (4, 56, 56, 40), (4, 196, 512), (4, 17, 192), (4, 56, 56, 96)):
        yield f"layer_norm {'x'.join(map(str, shape))}", _layer_norm(*shape)
    yield "gelu 788x768", _of(lambda torch, x: torch.nn.functional.gelu(x), (788, 768))
    yield "gelu 68x768", _of(lambda torch, x: torch.nn.functional.gelu(x), (68, 768))
    yield "silu 4x96x112x112", _of(lambda torch, x: torch.nn.functional.silu(x), (4, 96, 112, 112))
    yield "relu 4x256x56x56", _of(lambda torch, x: torch.relu(x), (4, 256, 56, 56))
    yield "add 4x256x56x56", _of(lambda torch, x, y: x + y, (4, 256, 56, 56), (4, 256, 56, 56))
    yield "add 4x40x16x16", _of(lambda torch, x, y: x + y, (4, 40, 16, 16), (4, 40, 16, 16))
    yield "scale by channel", _of(lambda torch, x, y: x * y, (4, 144, 56, 56), (4, 144, 1, 1))
    yield "scale last", _of(lambda torch, x, y: x * y, (4, 56, 56, 40), (40,))
    yield "mean of planes", _of(lambda torch, x: x.mean((2, 3)), (4, 144, 56, 56))
    yield "mean of tokens", _of(lambda torch, x: x.mean(1), (4, 196, 512))
    yield "softmax 4x3x197x197", _of(lambda torch, x: torch.softmax(x, -1), (4, 3, 197, 197))
    yield "bmm 256x49x32x49", _of(lambda torch, x, y: x @ y, (256, 49, 32), (256, 32, 49))
    yield (
        "attention 4x3x197x64",
        _of(lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v), *[(4, 3, 197, 64)] * 3),
    )
    yield (
        "attention 4x3x17x64",
        _of(lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v), *[(4, 3, 17, 64)] * 3),
    )
    yield "max_pool 4x64x112", _of(lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1), (4, 64, 112, 112))
    yield "to channels last", _of(lambda torch, x: x.permute(0, 2, 3, 1).contiguous(), (4, 40, 56, 56))
    yield "tokens to channels", _of(lambda torch, x: x.transpose(1, 2).contiguous(), (4, 196, 512))
    yield "roll 4x56x56x96", _of(lambda torch, x: torch.roll(x, (-3, -3), (1, 2)), (4, 56, 56, 96))
    yield (
        "windows 4x56x56x96",
        _of(lambda torch, x: x.view(4, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).contiguous(), (4, 56, 56, 96)),
    )
    yield "chain of 20 small adds", _of(_chain, (64, 64))
    yield from _moves_and_choices()


def _moves_and_choices() -> Iterator[tuple[str, Case]]:
    """Ops that copy, choose or put elements, and reductions that are no sums: memory and comparisons, no products."""
    rows, images = (1024, 1024), (8, 64, 56, 56)
    yield "repeat 1x4", _of(lambda torch, x: x.repeat(1, 4), (1024, 512))
    yield "repeat 4x1", _of(lambda torch, x: x.repeat(4, 1), (512, 1024))
    yield "repeat_interleave heads", _of(lambda torch, x: x.repeat_interleave(4, 1), (4, 8, 256, 64))
    yield "repeat_interleave last", _of(lambda torch, x: x.repeat_interleave(4, -1), (1024, 512))
    yield "stack last", _of(lambda torch, x, y: torch.stack((x, y), -1), rows, rows)
    yield "tril", _of(lambda torch, x: x.tril(), rows)
    yield "triu 16x256x256", _of(lambda torch, x: x.triu(1), (16, 256, 256))
    yield "flip last", _of(lambda torch, x: x.flip(-1), rows)
    yield "flip first", _of(lambda torch, x: x.flip(0), rows)
    yield "roll last", _of(lambda torch, x: x.roll(5, -1), rows)
    yield "roll whole", _of(lambda torch, x: x.roll(1000), rows)
    yield "pixel_shuffle", _of(lambda torch, x: torch.nn.functional.pixel_shuffle(x, 2), images)
    yield "pixel_unshuffle", _of(lambda torch, x: torch.nn.functional.pixel_unshuffle(x, 2), images)
    yield "unfold 3x3", _of(lambda torch, x: torch.nn.functional.unfold(x, 3, padding=1), (4, 32, 56, 56))
    yield "windows in time", _of(lambda torch, x: x.unfold(-1, 400, 160).contiguous(), (4, 160000))
    yield "pow 2.5", _of(lambda torch, x: torch.pow(x.abs(), 2.5), rows)
    yield "pow of tensors", _of(lambda torch, x, y: torch.pow(x.abs(), y), rows, rows)
    yield "logsumexp last", _of(lambda torch, x: x.logsumexp(-1), rows)
    yield "logsumexp first", _of(lambda torch, x: x.logsumexp(0), rows)
    yield "max last", _of(lambda torch, x: x.max(-1).values, rows)
    yield "min first", _of(lambda torch, x: x.min(0).values, rows)
    yield "amax of planes", _of(lambda torch, x: x.amax((2, 3)), images)
    yield "bce", _of(lambda torch, x, y: torch.nn.functional.binary_cross_entropy(x.sigmoid(), y.abs()), rows, rows)
    yield (
        "bce with logits",
        _of(lambda torch, x, y: torch.nn.functional.binary_cross_entropy_with_logits(x, y), rows, rows),
    )
    yield "masked_select", _with_places(lambda torch, x: torch.rand(rows) < 0.5, lambda torch, x, i: x[i], rows)
    yield "gather", _with_places(_places_in_rows, lambda torch, x, i: x.gather(1, i), rows)
    yield (
        "scatter",
        _with_places(_places_in_rows, lambda torch, x, i: torch.zeros_like(x).scatter(1, i, x), rows),
    )
    yield (
        "scatter_add of rows",
        _with_places(_places_in_rows, lambda torch, x, i: torch.zeros_like(x).scatter_add(1, i, x), rows),
    )
    yield (
        "scatter_add of a graph",
        _with_places(
            lambda torch, x: torch.randint(0, 2000, (20000, 1)).expand(20000, 64),
            lambda torch, x, i: torch.zeros(2000, 64).scatter_add(0, i, x),
            (20000, 64),
        ),
    )
    for name in ("argmax", "argmin"):
        for dim in (-1, 0, None):
            yield f"{name} {dim}", _of(lambda torch, x, name=name, dim=dim: getattr(x, name)(dim), rows)
    yield "nonzero", _of(lambda torch, x: torch.nonzero(x > 0), rows)
    yield "topk", _of(lambda torch, x: x.topk(8, -1).values, (1024, 1024))
    yield "sort", _of(lambda torch, x: x.sort(-1).values, (1024, 256))


def _places_in_rows(torch: Any, x: Any) -> Any:
    return torch.randint(0, x.shape[1], x.shape)


def _with_places(places: Callable[[Any, Any], Any], op: Callable[..., Any], shape: tuple[int, ...]) -> Case:
    """An op on random numbers and on a mask or positions, made once by a function of the framework and these."""

    def make(torch: Any) -> Tensors:
        x = torch.randn(*shape)
        return [x, places(torch, x)]

    return make, op


def _chain(torch: Any, x: Any) -> Any:
    for _ in range(20):
        x = x + 1.0
    return x


PARTS = ("forward", "gradients")
POSITIONS = ("argmax", "argmin", "nonzero")
"""Ops whose results are positions, which have no gradients."""

CASES = [
    (f"{name}, {part}", case, part)
    for name, case in _cases()
    for part in (PARTS[:1] if name.startswith(POSITIONS) else PARTS)
]
_SGD = "SGD, 25 million parameters"


def _prepared(torch: Any, case: Case, part: str) -> _measure.Run:
    """A function without arguments that runs an op, or an op with all its gradients."""
    torch.manual_seed(0)
    make, op = case
    arguments = make(torch)
    if part == "forward":
        return lambda: op(torch, *arguments)
    inputs = [each.requires_grad_() for each in arguments if each.is_floating_point()]
    grad = torch.ones_like(op(torch, *arguments))
    return lambda: torch.autograd.grad(op(torch, *arguments), inputs, grad)


def _sgd(torch: Any) -> _measure.Run:
    """A step over the parameters of a ResNet-50, about."""
    sizes = [(512, 512, 3, 3)] * 3 + [(256, 256, 3, 3)] * 6 + [(1024, 512)] * 20 + [(512,)] * 100
    parameters = [torch.nn.Parameter(torch.randn(*each)) for each in sizes]
    for each in parameters:
        each.grad = torch.randn_like(each)
    return torch.optim.SGD(parameters, 1e-3, momentum=0.9).step  # type: ignore[no-any-return]


def _best(run: _measure.Run, seconds: float) -> float:
    """The quickest of the calls that fit into some seconds, in microseconds."""
    for _ in range(3):
        run()
    best, end = float("inf"), perf_counter() + seconds
    while True:
        begin = perf_counter()
        run()
        now = perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best * 1e6


def _child(name: str, most: int) -> None:
    """Measure what the lines of the input ask for: the number of a case, of threads, and seconds."""
    torch = _measure.load(name, most)
    for line in sys.stdin:
        number, threads, seconds = json.loads(line)
        run = _sgd(torch) if number == len(CASES) else _prepared(torch, *CASES[number][1:])
        found = []
        for each in threads:
            torch.set_num_threads(each)
            found.append(_best(run, seconds))
        print(json.dumps(found), flush=True)


class _Child:
    """A process with one framework."""

    def __init__(self, name: str, most: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--child", name, str(most)],
            env=os.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *request: Any) -> list[float]:
        """Send a request; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: list[float] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], int(sys.argv[3]))
        return 0
    parser = _measure.parser(__doc__ or "", "cases whose names match")
    cores = len(os.sched_getaffinity(0))
    usual = [each for each in (1, 2, 4, 8, 16) if each <= cores]
    parser.add_argument("--threads", type=int, nargs="+", default=usual, help="numbers of threads (1 2 4 8 16)")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each number (0.05)")
    parser.add_argument("--list", action="store_true", help="print the cases and leave")
    options = parser.parse_args()
    names = [*[name for name, _, _ in CASES], _SGD]
    if options.list:
        print(*names, sep="\n")
        return 0
    children = {each: _Child(each, max(options.threads)) for each in _measure.FRAMEWORKS}
    numbers = ", ".join(map(str, options.threads))
    print(f"microseconds with {numbers} threads: Flambeau; PyTorch; ratio with the most threads; quickest")
    ratios: dict[str, float] = {}
    lines = []
    for number, name in enumerate(names):
        if not options.only.search(name):
            continue
        found = {each: [float("inf")] * len(options.threads) for each in children}
        for _ in range(2):
            for each, child in children.items():
                again = child.ask(number, options.threads, options.seconds)
                found[each] = [min(pair) for pair in zip(found[each], again, strict=True)]
        own, other = found.values()
        ratios[name] = own[-1] / other[-1]
        best = options.threads[own.index(min(own))]
        lines.append({"name": name, "flambeau": own, "pytorch": other, "ratio": ratios[name], "best": best})
        shown = "   ".join("".join([f"{each:9.0f}" for each in times]) for times in (own, other))
        print(f"{name:38}{shown}{ratios[name]:8.2f}{best:5}", flush=True)
    for child in children.values():
        child.end()
    _measure.print_summary(ratios)
    slower = [each for each in lines if each["flambeau"][-1] > 1.1 * min(each["flambeau"])]
    print(f"more threads are slower by a tenth or more in {len(slower)} of {len(lines)}")
    _measure.write_json(options.json, {"threads": options.threads, "ops": lines})
    return 0


if __name__ == "__main__":
    sys.exit(main())
