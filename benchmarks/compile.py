"""`torch.compile` on small and middling work: PyTorch eager, Flambeau eager, Flambeau compiled, taking turns.

python benchmarks/compile.py
python benchmarks/compile.py --only MLP --quick

PyTorch's own compiler is left out: it needs a C++ compiler, and tens of seconds for each line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import _measure
from _measure import Run

Case = Callable[[Any], Callable[[], Any]]
"""From the module that plays `torch` to what is to be compiled."""


def chain(torch: Any) -> Callable[[], Any]:
    """Twenty elementwise ops on few elements."""
    x = torch.linspace(-1, 1, 32)

    def run() -> Any:
        y = x
        for _ in range(5):
            y = torch.relu(y * 1.5 + 0.25) - 0.5
        return y

    return run


def mlp(width: int, rows: int) -> Case:
    def case(torch: Any) -> Callable[[], Any]:
        nn = torch.nn
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        criterion = nn.CrossEntropyLoss()
        x, y = torch.randn(rows, width), torch.randint(10, (rows,))

        def step() -> Any:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return case


def convnet(torch: Any) -> Callable[[], Any]:
    """The notes' convolutional network, one image, without gradients."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(1024, 10),
    ).eval()  # fmt: skip
    image = torch.randn(1, 1, 28, 28)

    def run() -> Any:
        with torch.no_grad():
            return model(image)

    return run


def rnn(torch: Any) -> Callable[[], Any]:
    """A recurrent cell over 16 steps, forward and backward."""
    torch.manual_seed(0)
    cell = torch.nn.RNNCell(16, 32)
    xs = torch.randn(16, 4, 16)

    def step() -> Any:
        for each in cell.parameters():
            each.grad = None
        hidden = torch.zeros(4, 32)
        for x in xs:
            hidden = cell(x, hidden)
        loss = hidden.square().mean()
        loss.backward()
        return loss.detach()

    return step


def transformer(torch: Any) -> Callable[[], Any]:
    """A layer of a transformer, forward and backward."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    x = torch.randn(4, 16, 64)

    def step() -> Any:
        for each in layer.parameters():
            each.grad = None
        loss = layer(x).square().mean()
        loss.backward()
        return loss.detach()

    return step


CASES: dict[str, Case] = {
    "chain of 20 ops": chain,
    "MLP of 32, step": mlp(32, 16),
    "MLP of 256, step": mlp(256, 64),
    "convnet, one image": convnet,
    "RNN cell, 16 steps": rnn,
    "transformer layer": transformer,
}


def main() -> int:
    options = _measure.parser(__doc__ or "", "cases whose names match").parse_args()
    torch, flambeau = _measure.load("torch"), _measure.load("flambeau")
    rounds, seconds = (5, 0.05) if options.quick else (15, 0.2)
    print(f"{'':24}{'PyTorch':>10}{'eager':>10}{'compiled':>10}   microseconds; then ratios to PyTorch")
    ratios: list[float] = []
    for name, case in CASES.items():
        if not options.only.search(name):
            continue
        plain: Run = case(torch)
        eager: Run = case(flambeau)
        compiled: Run = flambeau.compile(case(flambeau), fullgraph=True)
        for _ in range(4):
            results = [plain(), eager(), compiled()]
        if not _measure.same(_measure.plain(results[1]), _measure.plain(results[2])):
            print(f"{name:24} the compiled function differs: {results[1:]}")
            return 1
        theirs, ours, best = _measure.alternate([plain, eager, compiled], rounds, seconds, collect=True)
        ratios.append(best.median / theirs.median)
        print(
            f"{name:24}{theirs.median:10.1f}{ours.median:10.1f}{best.median:10.1f}"
            f"{ours.median / theirs.median:9.2f}{ratios[-1]:9.2f}"
        )
    print(f"geometric mean, compiled to PyTorch eager: {_measure.geometric_mean(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
