"""What each level of `flambeau.reproducible` costs: times of ops with their gradients and of training steps.

python benchmarks/reproducible.py
python benchmarks/reproducible.py --only 'linear|gpt' --rounds 20 --threads 2

The levels take turns, round by round, and the shortest time of each counts; with one thread it is processor time. So
other work on the machine matters little. A line says: the op or model, microseconds without a level, and the time at
each level as a multiple of it.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import flambeau
from flambeau import nn

F = nn.functional
LEVELS = (None, "run", "threads", "batch", "machine")
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
    """Two transformer layers on tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(128, 1000)

    def forward(self, tokens: Any) -> Any:
        """Logits of each token."""
        return self.head(self.layers(self.tokens(tokens)))


class Lstm(nn.Module):
    """Two recurrent layers on tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(1000, 96), nn.LSTM(96, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 1000)

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


def _tokens() -> Any:
    return flambeau.randint(0, 1000, (8, 64))


MODELS: dict[str, Callable[[], Step]] = {
    "gpt": lambda: _training(Gpt(), _tokens(), _tokens().flatten()),
    "resnet": lambda: _training(_resnet(), flambeau.randn(16, 3, 32, 32), flambeau.randint(0, 10, (16,))),
    "lstm": lambda: _training(Lstm(), _tokens(), _tokens().flatten()),
}


def measure(make: Callable[[], Step], rounds: int) -> list[float]:
    """The shortest time in seconds at each level."""
    flambeau.manual_seed(0)
    step, best = make(), [math.inf] * len(LEVELS)
    now = process_time if flambeau.get_num_threads() == 1 else perf_counter
    for number in range(rounds + 1):
        for position, level in enumerate(LEVELS):
            with flambeau.reproducible(level):
                step()  # the caches of the level before are forgotten
                for _ in range(2 if number else 0):
                    begin = now()
                    step()
                    best[position] = min(best[position], now() - begin)
    return best


def main() -> None:
    """Measure all, and print a line for each and the geometric means of the models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression that names have to match")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    flambeau.set_num_threads(options.threads)
    print(f"threads: {options.threads}\n{'':18}{'none, us':>10}" + "".join(f"{each:>9}" for each in LEVELS[1:]))
    logarithms = []
    for name, make in (OPS | MODELS).items():
        if not re.search(options.only, name):
            continue
        none, *others = measure(make, options.rounds)
        print(f"{name:18}{none * 1e6:10.0f}" + "".join(f"{each / none:9.2f}" for each in others), flush=True)
        if name in MODELS:
            logarithms.append([math.log(each / none) for each in others])
    if logarithms:
        means = [math.exp(sum(each) / len(each)) for each in zip(*logarithms, strict=True)]
        print(f"{'models':28}" + "".join(f"{each:9.2f}" for each in means))


if __name__ == "__main__":
    main()
