"""What each level of `flambeau.reproducible` costs: times of ops with their gradients and of training steps.

python benchmarks/reproducible.py
python benchmarks/reproducible.py --only 'linear|gpt' --rounds 20 --threads 2
python benchmarks/reproducible.py --device cuda
python benchmarks/reproducible.py --zoo --only 'llama|resnet'

The levels take turns, round by round, and the shortest time of each counts; with one thread it is processor time. So
other work on the machine matters little. A line says: the op or model, microseconds without a level, and the time at
each level as a multiple of it. With `--zoo` the models are those of `zoo.py`, of timm and transformers, with SGD; their
dropout and batch norms are those of evaluation, since "batch" refuses what mixes samples.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any

import flambeau
from flambeau import nn

F = nn.functional
LEVELS = (None, "run", "threads", "batch", "machine")
ON_CUDA = (None, "run", "batch")
Step = Callable[[], Any]


def _op(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Step:
    given = [(0.1 * flambeau.randn(*shape)).requires_grad_() for shape in shapes]

    def step() -> None:
        result = function(*given)
        flambeau.autograd.grad(result, given, flambeau.ones_like(result))

    return step


OPS: dict[str, Callable[[], Step]] = {
    "linear, 8 rows": lambda: _op(F.linear, (8, 768), (3072, 768), (3072,)),
    "linear, 512 rows": lambda: _op(F.linear, (512, 768), (768, 768), (768,)),
    "conv2d": lambda: _op(lambda x, w: F.conv2d(x, w, padding=1), (8, 32, 28, 28), (64, 32, 3, 3)),
    "attention": lambda: _op(F.scaled_dot_product_attention, *[(4, 8, 128, 32)] * 3),
    "layer_norm": lambda: _op(lambda x, w, b: F.layer_norm(x, (768,), w, b), (512, 768), (768,), (768,)),
    "softmax": lambda: _op(lambda x: x.softmax(-1), (512, 1000)),
    "gelu": lambda: _op(F.gelu, (512, 768)),
    "sum": lambda: _op(lambda x: x.sum(0), (512, 768)),
    "embedding": lambda: _op(lambda w: F.embedding(flambeau.arange(1024).view(8, 128) * 7919 % 1000, w), (1000, 256)),
}


class Gpt(nn.Module):
    """Transformer layers on tokens."""

    def __init__(self, layers: int = 2, width: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        heads = width // 64 if width > 256 else 4
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens: Any) -> Any:
        """Logits of each token."""
        return self.head(self.layers(self.tokens(tokens)))


class Lstm(nn.Module):
    """Two recurrent layers on tokens."""

    def __init__(self, inputs: int = 96, width: int = 128) -> None:
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(1000, inputs), nn.LSTM(inputs, width, 2, batch_first=True)
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens: Any) -> Any:
        """Logits of each token."""
        return self.head(self.lstm(self.tokens(tokens))[0])


def _resnet() -> nn.Module:
    def block(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.GroupNorm(8, outputs), nn.ReLU()]

    layers = [*block(3, 32, 1), *block(32, 32, 1), *block(32, 64, 2), *block(64, 64, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def _training(net: nn.Module, data: Any, target: Any) -> Step:
    optimizer = flambeau.optim.AdamW(net.parameters())

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(data).flatten(0, -2), target).backward()
        optimizer.step()

    return step


def _tokens(*shape: int) -> Any:
    return flambeau.randint(0, 1000, shape or (8, 64))


MODELS: dict[str, Callable[[], Step]] = {
    "gpt": lambda: _training(Gpt(), _tokens(), _tokens().flatten()),
    "resnet": lambda: _training(_resnet(), flambeau.randn(16, 3, 32, 32), flambeau.randint(0, 10, (16,))),
    "lstm": lambda: _training(Lstm(), _tokens(), _tokens().flatten()),
}


def _larger(layers: int, width: int, dtype: Any) -> Step:
    net = Gpt(layers, width).to(dtype)
    return _training(net, _tokens(16, 512), _tokens(16 * 512))


LARGER: dict[str, Callable[[], Step]] = {
    "larger gpt": lambda: _larger(4, 768, flambeau.float32),
    "gpt in bfloat16": lambda: _larger(4, 768, flambeau.bfloat16),
    "larger resnet": lambda: _training(_resnet(), flambeau.randn(128, 3, 64, 64), flambeau.randint(0, 10, (128,))),
    "larger lstm": lambda: _training(Lstm(256, 512), _tokens(64, 128), _tokens(64 * 128)),
    "lstm": MODELS["lstm"],
}
"""What gives a GPU enough to do; the geometric mean there is theirs."""


def _of_libraries() -> dict[str, Callable[[], Step]]:
    """Training steps of models of timm and transformers."""
    flambeau.stand_in_for_torch()
    from _zoo.child import Case
    from _zoo.models import MODELS as ZOO

    def make(start: Any) -> Step:
        case = Case(flambeau, flambeau.get_default_device().type, start, True, False, lambda model: model)
        case.model.eval()
        return case.step

    return {name: partial(make, start) for name, start in ZOO.items()}


def measure(make: Callable[[], Step], rounds: int, device: str) -> list[float]:
    """The shortest time in seconds at each level; on a GPU of ten steps, from the first launch to the last result."""
    flambeau.manual_seed(0)
    levels, on_gpu = _levels(device), device == "cuda"
    with flambeau.device(device):
        step = make()
        best = [math.inf] * len(levels)
        now = process_time if flambeau.get_num_threads() == 1 and not on_gpu else perf_counter
        for number in range(rounds + 1):
            for position, level in enumerate(levels):
                with flambeau.reproducible(level):
                    for _ in range(3 if on_gpu else 1):
                        step()  # the caches of the level before are forgotten
                    for _ in range(2 if number else 0):
                        begin = now()
                        for _ in range(_STEPS_ON_GPU if on_gpu else 1):
                            step()
                        if on_gpu:
                            flambeau.cuda.synchronize()
                        best[position] = min(best[position], (now() - begin) / (_STEPS_ON_GPU if on_gpu else 1))
    return best


_STEPS_ON_GPU = 10


def _levels(device: str) -> tuple[str | None, ...]:
    return ON_CUDA if device == "cuda" else LEVELS


def main() -> None:
    """Measure all, and print a line for each and the geometric means of the models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression that names have to match")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--zoo", action="store_true", help="models of timm and transformers, and no others")
    options = parser.parse_args()
    flambeau.set_num_threads(options.threads)
    levels = [each for each in _levels(options.device) if each is not None]
    on_gpu = options.device == "cuda"
    models = _of_libraries() if options.zoo else LARGER if on_gpu else MODELS
    kinds = models if options.zoo else OPS | MODELS | models
    heading = flambeau.cuda.get_device_name() if on_gpu else f"threads: {options.threads}"
    print(f"{heading}\n{'':18}{'none, us':>10}" + "".join(f"{each:>9}" for each in levels))
    logarithms = []
    for name, make in kinds.items():
        if not re.search(options.only, name):
            continue
        try:
            none, *others = measure(make, options.rounds, options.device)
        except (ImportError, RuntimeError) as error:
            print(f"{name:18} raises: {error}", flush=True)
            continue
        print(f"{name:18}{none * 1e6:10.0f}" + "".join(f"{each / none:9.2f}" for each in others), flush=True)
        if name in models:
            logarithms.append([math.log(each / none) for each in others])
    if logarithms:
        means = [math.exp(sum(each) / len(each)) for each in zip(*logarithms, strict=True)]
        print(f"{'models':28}" + "".join(f"{each:9.2f}" for each in means))


if __name__ == "__main__":
    main()
