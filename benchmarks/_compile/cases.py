"""The functions that are compiled: tiny ones, where what is around the kernels counts, and whole steps of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from _train_steps.workloads import WORKLOADS

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
TINY = ("chain of 20 ops", "MLP of 32, step", "convnet, one image", "RNN cell, 16 steps")
"""Those whose goal is 0.15."""

_STEPS = (
    "MLP, batch 64", "convnet, batch 1", "convnet, batch 64", "RNN of linear layers", "LSTM, 2 layers of 256",
    "ResNet-18, training", "ResNet-18, inference", "GPT, float32",
)  # fmt: skip
"""Of `train_steps.py` those that are more than one op."""

CASES.update({name: WORKLOADS[name].build for name in _STEPS})
