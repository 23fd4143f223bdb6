"""Microseconds per call of layers on tiny inputs and per optimizer step, Flambeau against PyTorch, in one process.

python benchmarks/modules.py
python benchmarks/modules.py --only 'Conv2d|Adam' --json modules.json
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import _measure
from _measure import Run
from overhead import CASES, measure, print_row

Case = Callable[[Any], Run]

# What builds a layer, and what makes its inputs.
LAYERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], tuple[Any, ...]]]] = {
    "Linear": (lambda nn: nn.Linear(4, 4), lambda torch: (torch.randn(2, 4),)),
    "Conv1d": (lambda nn: nn.Conv1d(2, 2, 3), lambda torch: (torch.randn(1, 2, 6),)),
    "Conv2d": (lambda nn: nn.Conv2d(2, 2, 3), lambda torch: (torch.randn(1, 2, 6, 6),)),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(2, 2, 2, stride=2), lambda torch: (torch.randn(1, 2, 3, 3),)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(4), lambda torch: (torch.randn(3, 4),)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(2), lambda torch: (torch.randn(2, 2, 3, 3),)),
    "BatchNorm2d, eval": (lambda nn: nn.BatchNorm2d(2).eval(), lambda torch: (torch.randn(2, 2, 3, 3),)),
    "LayerNorm": (lambda nn: nn.LayerNorm(4), lambda torch: (torch.randn(2, 4),)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), lambda torch: (torch.randn(2, 4, 3),)),
    "RNN": (lambda nn: nn.RNN(3, 4), lambda torch: (torch.randn(3, 2, 3),)),
    "LSTM": (lambda nn: nn.LSTM(3, 4), lambda torch: (torch.randn(3, 2, 3),)),
    "GRU": (lambda nn: nn.GRU(3, 4), lambda torch: (torch.randn(3, 2, 3),)),
    "LSTMCell": (lambda nn: nn.LSTMCell(3, 4), lambda torch: (torch.randn(2, 3),)),
    "TransformerEncoderLayer": (
        lambda nn: nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0),
        lambda torch: (torch.randn(3, 2, 4),),
    ),
    "TransformerDecoderLayer": (
        lambda nn: nn.TransformerDecoderLayer(4, 2, dim_feedforward=8, dropout=0.0),
        lambda torch: (torch.randn(3, 2, 4), torch.randn(2, 2, 4)),
    ),
    "MultiheadAttention": (lambda nn: nn.MultiheadAttention(4, 2), lambda torch: (torch.randn(3, 2, 4),) * 3),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(2), lambda torch: (torch.randn(1, 2, 4, 4, requires_grad=True),)),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(2), lambda torch: (torch.randn(1, 2, 4, 4, requires_grad=True),)),
    "Dropout": (lambda nn: nn.Dropout(0.0), lambda torch: (torch.randn(2, 4, requires_grad=True),)),
    "ReLU": (lambda nn: nn.ReLU(), lambda torch: (torch.randn(2, 4, requires_grad=True),)),
    "Embedding": (lambda nn: nn.Embedding(8, 4), lambda torch: (torch.randint(8, (2, 3)),)),
    "CrossEntropyLoss": (
        lambda nn: nn.CrossEntropyLoss(),
        lambda torch: (torch.randn(3, 4, requires_grad=True), torch.randint(4, (3,))),
    ),
    "MSELoss": (
        lambda nn: nn.MSELoss(),
        lambda torch: (torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)),
    ),
    "MLP of 3 layers": (
        lambda nn: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)),
        lambda torch: (torch.randn(2, 4),),
    ),
}
OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda optim, params: optim.SGD(params, lr=1e-3),
    "SGD, momentum": lambda optim, params: optim.SGD(params, lr=1e-3, momentum=0.9),
    "Adam": lambda optim, params: optim.Adam(params),
    "AdamW": lambda optim, params: optim.AdamW(params),
    "Adamax": lambda optim, params: optim.Adamax(params),
    "NAdam": lambda optim, params: optim.NAdam(params),
    "RAdam": lambda optim, params: optim.RAdam(params),
    "Adagrad": lambda optim, params: optim.Adagrad(params),
    "Adadelta": lambda optim, params: optim.Adadelta(params),
    "RMSprop": lambda optim, params: optim.RMSprop(params),
    "Rprop": lambda optim, params: optim.Rprop(params),
    "ASGD": lambda optim, params: optim.ASGD(params),
    "Adafactor": lambda optim, params: optim.Adafactor(params),
    "Muon": lambda optim, params: optim.Muon(params),
    "LBFGS": lambda optim, params: optim.LBFGS(params, max_iter=1),
}


def first_tensor(output: Any) -> Any:
    """The output itself, or the first of several."""
    return output[0] if isinstance(output, tuple) else output


def forward(name: str, learning: bool) -> Case:
    """A call of a layer, in training mode but not recorded; or recorded, with its backward pass."""

    def case(torch: Any) -> Run:
        build, inputs_of = LAYERS[name]
        torch.manual_seed(0)
        module, inputs = build(torch.nn), inputs_of(torch)
        leaves = [each for each in (*module.parameters(), *inputs) if each.requires_grad]

        def call() -> object:
            with torch.no_grad():
                return first_tensor(module(*inputs))

        def learn() -> object:
            for leaf in leaves:
                leaf.grad = None
            first_tensor(module(*inputs)).sum().backward()
            return leaves[0].grad

        return learn if learning else call

    return case


def optimizer_step(name: str) -> Case:
    """A step over 100 parameters of 4x4, whose gradients stay."""

    def case(torch: Any) -> Run:
        torch.manual_seed(0)
        params = [torch.randn(4, 4, requires_grad=True) for _ in range(100)]
        for param in params:
            param.grad = torch.randn(4, 4)
        optimizer = OPTIMIZERS[name](torch.optim, params)

        def step() -> object:
            optimizer.step(lambda: 1.0) if name == "LBFGS" else optimizer.step()
            return params[0].detach()

        return step

    return case


def main() -> int:
    """Measure the chosen cases; 1 if Flambeau could not do one of them."""
    parser = _measure.parser("Overhead of layers and optimizers, Flambeau against PyTorch.", "only cases that match")
    options = parser.parse_args()
    rounds, seconds = (10, 0.002) if options.quick else (40, 0.004)
    torch, flambeau = _measure.load("torch"), _measure.load("flambeau")
    CASES.clear()
    for name in LAYERS:
        CASES[name] = forward(name, learning=False)
        CASES[f"{name}, backward"] = forward(name, learning=True)
    for name in OPTIMIZERS:
        CASES[f"{name}.step"] = optimizer_step(name)

    print(f"PyTorch {torch.__version__}, one thread")
    print(f"{'case':<46}{'Flambeau us':>12}{'PyTorch us':>12}{'ratio':>9}")
    rows = []
    for name in filter(options.only.search, CASES):
        rows.append(measure(name, flambeau, torch, rounds, seconds, collect=False))
        print_row(rows[-1])
    ratios = {row.name: row.ratio for row in rows if row.ratio is not None}
    for kind, is_step in (("layers", False), ("optimizers", True)):
        chosen = [ratio for name, ratio in ratios.items() if name.endswith(".step") is is_step]
        if chosen:
            print(f"geometric mean of {kind}: {_measure.geometric_mean(chosen):.3f}")
    _measure.print_summary(ratios, goal="geometric mean at most 1.0")
    cases = [{"name": row.name, "status": row.status, "ratio": row.ratio} for row in rows]
    mean = _measure.geometric_mean(ratios.values()) if ratios else None
    _measure.write_json(options.json, {"pytorch": torch.__version__, "geometric_mean": mean, "cases": cases})
    return 1 if len(ratios) < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
