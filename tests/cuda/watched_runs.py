"""Steps of small networks on an idle device, watched and plain; prints where they ask other things of the device.

python -m tests.cuda.watched_runs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau._dispatch.interpreter import Interpreter, Watcher
from tests.support.idle_cuda import idle_device
from tools.readers import stands_for_others

nn, F = torch.nn, torch.nn.functional

ASKED: list[tuple[str, str]] = []


class Listener(Watcher):
    """Hears of ops and does nothing with them."""

    def __init__(self) -> None:
        self.heard = 0

    def ran(self, op: Any, args: Any, result: Any, start: int, end: int) -> None:
        self.heard += 1


class _Reader(Interpreter):
    """Runs ops as they are; which of those it met that run in plain modes alone."""

    def __init__(self) -> None:
        self.met: set[str] = set()

    def run(self, op: Any, args: Any) -> Any:
        if stands_for_others(op):
            self.met.add(op.name)
        return op(*args)


class _Attention(nn.Module):
    """Heads from one product, with or without dropout."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.qkv, self.out, self.dropout = nn.Linear(16, 48), nn.Linear(16, 16), dropout

    def forward(self, x: Any) -> Any:
        """Of (batch, length, 16)."""
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))


class _Gated(nn.Module):
    """What feeds forward in Llama, behind its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(16)
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((16, 32), (16, 32), (32, 16)))

    def forward(self, x: Any) -> Any:
        """Of (..., 16)."""
        given = self.norm(x)
        return x + self.down(F.silu(self.gate(given)) * self.up(given))


class _Recurrent(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        """The outputs of all steps."""
        return self.layer(x)[0]


class _Subscripts(nn.Module):
    """Rows picked by positions and by masks, joined, sorted, filled and written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.register_buffer("positions", torch.tensor([3, 0, 2]))
        self.register_buffer("mask", torch.arange(16) % 3 == 0)

    def forward(self, x: Any) -> Any:
        """Of (batch, length, 16)."""
        y = self.layer(x)
        picked = torch.cat([y[:, self.positions], y.index_select(1, self.positions), y[:, :1].expand(-1, 2, -1)], 1)
        highest = picked.masked_fill(self.mask, -1.0).sort(1).values[:, -4:]
        written = torch.zeros_like(highest)
        written[:, 0] = 2.0
        written[:, 1:] = highest[:, :3]
        return written + highest.gather(2, torch.zeros_like(highest, dtype=torch.int64)) + torch.where(self.mask, y, x)


class _Powers(nn.Module):
    """Small powers, whose derivatives devices have in one kernel."""

    def forward(self, x: Any) -> Any:
        """Of any shape."""
        return x**2 + x**3 + x.pow(4)


class _Written(nn.Module):
    """A tensor that is changed in place where a mask says so, at indices, and by rows."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.arange(16) % 3 == 0)
        self.register_buffer("positions", torch.tensor([1, 0]))

    def forward(self, x: Any) -> Any:
        """Of (batch, length, 16)."""
        written = (x * 2).masked_fill_(self.mask, -100.0)
        written.index_fill_(1, self.positions, 1.0).index_add_(0, self.positions, x)
        written.scatter_(1, torch.zeros_like(x, dtype=torch.int64), x.detach())
        turned = (x * 3).mT
        turned /= 2.0  # recorded: what is overwritten is copied first, in the order of its memory
        return x + written.detach().masked_fill_(self.mask, 3.0) + turned.mT


class _Heads(nn.Module):
    """Layers without bias whose results are divided into heads: their gradients have gaps."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)

    def forward(self, x: Any) -> Any:
        """Of (batch, length, 16)."""
        of_x, key, value = (each.view(*x.shape[:2], 2, 8).transpose(1, 2) for each in (x, self.key(x), self.value(x)))
        return ((of_x @ key.mT).softmax(-1) @ value).transpose(1, 2).reshape(x.shape)


class _Tokens(nn.Module):
    """Words and places, looked up in tables; the loss of a language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 16), nn.Embedding(4, 16)
        self.head = nn.Linear(16, 11, bias=False)

    def forward(self, x: Any) -> Any:
        """Of (batch, 4, 16), of which the first elements name words."""
        words = x[..., 0].long() % 11
        logits = self.head(self.words(words) + self.places(torch.arange(4, device=x.device)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten()) + 0 * x


def _image(*layers: Any) -> tuple[Any, tuple[int, ...]]:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(16)), (2, 3, 8, 8)


def _rows(*layers: Any) -> tuple[Any, tuple[int, ...]]:
    return nn.Sequential(*layers), (2, 4, 16)


_NETWORKS: dict[str, Callable[[], tuple[Any, tuple[int, ...]]]] = {
    "perceptron": lambda: _rows(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)),
    "no biases": lambda: _rows(nn.Linear(16, 32, bias=False), nn.GELU(), nn.Linear(32, 16, bias=False)),
    "norms": lambda: _rows(nn.LayerNorm(16), nn.Linear(16, 16), nn.RMSNorm(16), nn.LayerNorm(16, bias=False)),
    "dropout": lambda: _rows(nn.Linear(16, 16), nn.Dropout(0.1), nn.Tanh(), nn.Dropout(0.5)),
    "activations": lambda: _rows(nn.Linear(16, 16), nn.Softplus(), nn.ELU(), nn.Hardswish(), nn.Softmax(-1)),
    "in place": lambda: _rows(nn.Linear(16, 16), nn.ReLU(True), nn.Linear(16, 16), nn.SiLU(True), nn.Hardtanh(0, 1)),
    "convolutions": lambda: _image(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=2), nn.MaxPool2d(2)),
    "batch norm": lambda: _image(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(True), nn.AvgPool2d(2)),
    "group norm": lambda: _image(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.AdaptiveAvgPool2d(1)),
    "attention": lambda: _rows(_Attention(0.0), nn.LayerNorm(16)),
    "attention with dropout": lambda: _rows(_Attention(0.1), nn.LayerNorm(16)),
    "gated": lambda: _rows(_Gated(), _Gated(), nn.RMSNorm(16)),
    "encoder": lambda: _rows(nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True)),
    "subscripts": lambda: _rows(_Subscripts(), nn.LayerNorm(16)),
    "powers": lambda: _rows(nn.Linear(16, 16), _Powers()),
    "written in place": lambda: _rows(nn.Linear(16, 16), _Written()),
    "heads": lambda: _rows(nn.Linear(16, 16), _Heads()),
    "tokens": lambda: _rows(_Tokens()),
    "LSTM": lambda: _rows(_Recurrent(nn.LSTM(16, 16, batch_first=True))),
    "GRU": lambda: _rows(_Recurrent(nn.GRU(16, 16, batch_first=True))),
}

_OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9),
    "AdamW": lambda weights: torch.optim.AdamW(weights, 1e-3),
    "RMSprop": lambda weights: torch.optim.RMSprop(weights, 1e-3),
}


def _steps() -> dict[str, Callable[[], Any]]:
    """Every network in every state: trained by each of the optimizers, under autocast, and only run."""
    steps: dict[str, Callable[[], Any]] = {}
    for name, build in _NETWORKS.items():
        for optimizer, optimize in _OPTIMIZERS.items():
            for dtype in (torch.float32, torch.bfloat16):
                steps[f"{name}, {optimizer}, {dtype}"] = _training(build, optimize, dtype, False)
        steps[f"{name}, AdamW, autocast"] = _training(build, _OPTIMIZERS["AdamW"], torch.float32, True)
        for state in (torch.no_grad, torch.inference_mode):
            for training in (False, True):
                steps[f"{name}, {state.__name__}, {training=}"] = state()(_forward(build, training))
            steps[f"{name}, {state.__name__}, autocast"] = state()(_forward(build, False, autocast=True))
    return steps


def _training(build: Any, optimize: Any, dtype: Any, autocast: bool) -> Callable[[], Any]:
    network, shape = build()
    network(torch.ones(shape))  # lazy layers learn their sizes
    network.to("cuda", dtype)
    given = torch.ones(shape, device="cuda", dtype=dtype)
    optimizer = optimize(network.parameters())

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = F.mse_loss(network(given), network(given).detach())
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()

    return step


def _forward(build: Any, training: bool, autocast: bool = False) -> Callable[[], Any]:
    network, shape = build()
    network(torch.ones(shape))
    network.to("cuda").train(training)
    given = torch.ones(shape, device="cuda")

    def step() -> Any:
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            return network(given)

    return step


def _asked_in(step: Callable[[], Any]) -> list[tuple[str, str]]:
    ASKED.clear()
    step()
    return ASKED[:]


def compared(step: Callable[[], Any], listener: Listener) -> tuple[str, int]:
    """Where a step asks other things of the device while `listener` hears of its ops; how much it asks otherwise."""
    plain = _asked_in(step)
    with listener:
        watched = _asked_in(step)
    if watched == plain:
        return "", len(plain)
    place = next((i for i, (a, b) in enumerate(zip(plain, watched, strict=False)) if a != b), -1)
    seen = f"{plain[place]}, {watched[place]}" if place >= 0 else "the longer of them goes on"
    return f"{len(plain)} and {len(watched)} calls; number {place}: {seen}", len(plain)


def main() -> None:
    """Compare, and print the steps that differ with the first thing that does, and how many there are."""
    with idle_device(lambda what, which: ASKED.append((what, which))):
        steps = _steps()
        listener = Listener()
        for step in steps.values():
            for _ in range(3):
                step()
        for name, step in steps.items():
            difference, _ = compared(step, listener)
            if difference:
                print(f"{name}: {difference}")
        with _Reader() as reader:
            for step in steps.values():
                step()
        for name in sorted(reader.met):
            print(f"{name} runs in plain modes alone, and an interpreter met it")
        print(f"{len(steps)} steps compared, {listener.heard} ops heard of")


if __name__ == "__main__":
    main()
