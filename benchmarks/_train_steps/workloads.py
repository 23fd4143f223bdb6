"""What is measured: each workload is a function of the module that plays `torch`, and returns the step to be timed.

A step returns what is compared between the frameworks: the loss, or the result itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from . import networks

Step = Callable[[], Any]
Build = Callable[[Any], Step]

FLOAT32_TOLERANCE = 1e-3
BFLOAT16_TOLERANCE = 3e-2  # it has 8 bits of mantissa, and the frameworks round at different places


@dataclass(frozen=True)
class Workload:
    """A named step. One that trains changes parameters: its second loss tells whether the gradients were right.

    A heavy one takes PyTorch minutes on a processor without bfloat16 instructions.
    """

    name: str
    build: Build
    trains: bool
    tolerance: float
    heavy: bool


WORKLOADS: dict[str, Workload] = {}


def add(name: str, build: Build, trains: bool = False, bfloat16: bool = False, heavy: bool = False) -> None:
    """Enter a workload under its name."""
    tolerance = BFLOAT16_TOLERANCE if bfloat16 else FLOAT32_TOLERANCE
    WORKLOADS[name] = Workload(name, build, trains, tolerance, heavy)


def training_step(model: Any, optimizer: Any, loss_of: Callable[[], Any]) -> Step:
    """The loop's body that every tutorial shows."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    model.train()
    return step


def train_mlp(torch: Any) -> Step:
    """Adam on a batch of 64."""
    model = networks.mlp(torch)
    images, labels = torch.randn(64, 784), torch.randint(0, 10, (64,))
    optimizer = torch.optim.Adam(model.parameters())
    return training_step(model, optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels))


def train_convnet(batch: int) -> Build:
    """SGD with momentum on a batch of images of 28x28."""

    def build(torch: Any) -> Step:
        model, loss_fn = networks.convnet(torch), torch.nn.CrossEntropyLoss()
        images, labels = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
        return training_step(model, optimizer, lambda: loss_fn(model(images), labels))

    return build


def train_linear_rnn(torch: Any) -> Step:
    """SGD through five time steps, whose losses are added, on a batch of 10."""
    model, loss_fn = networks.linear_rnn(torch), torch.nn.MSELoss()
    batch, start, target = torch.randn(10, 50), torch.zeros(10, 20), torch.zeros(10, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)

    def loss_of() -> Any:
        hidden, loss = start, 0
        for _ in range(5):
            hidden, output = model(batch, hidden)
            loss = loss + loss_fn(output, target)
        return loss

    return training_step(model, optimizer, loss_of)


def train_lstm(torch: Any) -> Step:
    """Two layers of 256 over 50 time steps of 128 features, on a batch of 32, with Adam."""
    model = torch.nn.LSTM(128, 256, num_layers=2)
    inputs, target = torch.randn(50, 32, 128), torch.randn(50, 32, 256)
    optimizer = torch.optim.Adam(model.parameters())
    return training_step(model, optimizer, lambda: torch.nn.functional.mse_loss(model(inputs)[0], target))


def train_resnet(torch: Any) -> Step:
    """SGD with momentum on a batch of 16 images of 32x32."""
    model = networks.resnet18(torch)
    images, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    # Small steps: float32's rounding alone changes some of PyTorch's gradients here by 0.2 %, as float64 shows.
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return training_step(model, optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels))


def infer_resnet(torch: Any) -> Step:
    """The classes' scores of 16 images of 32x32, without gradients."""
    model = networks.resnet18(torch).eval()
    images = torch.randn(16, 3, 32, 32)

    def step() -> Any:
        with torch.no_grad():
            return model(images)

    return step


def train_gpt(autocast: bool) -> Build:
    """AdamW on 8 sequences of 128 tokens; in float32, or with autocast to bfloat16."""

    def build(torch: Any) -> Step:
        model = networks.gpt(torch, vocabulary=1000, width=256, heads=4, layers=4, tokens=128)
        ids = torch.randint(0, 1000, (8, 129))
        inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].reshape(-1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

        def loss_of() -> Any:
            with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
                scores = model(inputs)
                return torch.nn.functional.cross_entropy(scores.reshape(-1, 1000), targets)

        return training_step(model, optimizer, loss_of)

    return build


def norm_gelu_softmax(torch: Any) -> Step:
    """Three elementwise and row-wise functions in a row, forward and backward, on 4 million elements."""
    functional = torch.nn.functional
    x = torch.randn(4096, 1024, requires_grad=True)
    incoming = torch.randn(4096, 1024)

    def step() -> Any:
        x.grad = None
        y = functional.layer_norm(functional.gelu(x), (1024,)).softmax(-1)
        y.backward(incoming)
        return y.detach(), x.grad

    return step


def elementwise(compute: Callable[[Any, Any, Any], Any]) -> Build:
    """A function of two tensors of 16 million elements between 0 and 1."""

    def build(torch: Any) -> Step:
        a, b = torch.rand(16_000_000), torch.rand(16_000_000)
        return lambda: compute(torch, a, b)

    return build


def matmul(size: int, dtype: str) -> Build:
    """A product of two square matrices."""

    def build(torch: Any) -> Step:
        a, b = (torch.randn(size, size).to(getattr(torch, dtype)) for _ in range(2))
        return lambda: a @ b

    return build


def adam_step(torch: Any) -> Step:
    """The update alone, over the parameters of a small transformer: 10 million in 26 tensors."""
    shapes: list[tuple[int, ...]] = [(5000, 512), (2000, 512)]
    for _ in range(2):
        shapes += [(1536, 512), (512, 512), (2048, 512), (512, 2048)]
        shapes += [(1536,), (512,), (2048,), (512,), (512,), (512,), (512,), (512,)]
    parameters = [torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape) * 0.01
    optimizer = torch.optim.Adam(parameters)

    def step() -> Any:
        optimizer.step()
        return parameters[0].detach()

    return step


add("MLP, batch 64", train_mlp, trains=True)
for each in (1, 64, 512):
    add(f"convnet, batch {each}", train_convnet(each), trains=True)
add("RNN of linear layers", train_linear_rnn, trains=True)
add("LSTM, 2 layers of 256", train_lstm, trains=True)
add("ResNet-18, training", train_resnet, trains=True)
add("ResNet-18, inference", infer_resnet)
add("GPT, float32", train_gpt(autocast=False), trains=True)
add("GPT, bfloat16 autocast", train_gpt(autocast=True), trains=True, bfloat16=True, heavy=True)
add("softmax(layer_norm(gelu)), 4M", norm_gelu_softmax)
add("add, 16M", elementwise(lambda torch, a, b: a + b))
add("exp, 16M", elementwise(lambda torch, a, b: a.exp()))
add("sum, 16M", elementwise(lambda torch, a, b: a.sum()))
for each in (64, 256, 1024):
    add(f"matmul {each}, float32", matmul(each, "float32"))
for each in (64, 256, 1024):
    add(f"matmul {each}, bfloat16", matmul(each, "bfloat16"), bfloat16=True, heavy=each == 1024)
add("Adam step, 10M parameters", adam_step)

BUSY_WORKLOADS = ("MLP, batch 64", "convnet, batch 64")
