"""Train a convolutional network on real handwritten digits: `python examples/digits/train.py`."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from model import ConvNet

import flambeau as torch
from flambeau import Tensor, optim
from flambeau.nn import functional as F
from flambeau.utils.dashboard import Dashboard

DATA = Path(__file__).parent / "mnist5k.npz"


@dataclass
class Split:
    """Images of shape (n, 1, 28, 28), standardised, and their labels."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass
class History:
    """What the curves are drawn from: a loss for each batch, scores for each epoch."""

    batch_losses: list[float] = field(default_factory=list)
    test_losses: list[float] = field(default_factory=list)
    train_accuracies: list[float] = field(default_factory=list)
    test_accuracies: list[float] = field(default_factory=list)


def load_digits(path: Path = DATA) -> tuple[Split, Split]:
    """The training and the test split; the training images give the mean and the scale for both."""
    with np.load(path) as arrays:
        raw = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    train_images = raw["train_images"].float()
    mean, scale = train_images.mean(), train_images.std()

    def split(name: str) -> Split:
        images = (raw[f"{name}_images"].float() - mean) / scale
        return Split(images.unsqueeze(1), raw[f"{name}_labels"].long())

    return split("train"), split("test")


def count_correct(scores: Tensor, labels: Tensor) -> int:
    """How many rows of `scores` have their largest entry at the label."""
    return int((scores.argmax(dim=1) == labels).sum().item())


@torch.no_grad()
def evaluate(net: ConvNet, split: Split, batch_size: int = 250) -> tuple[float, float]:
    """Mean loss and accuracy over `split`."""
    net.eval()
    loss, correct = 0.0, 0
    for images, labels in zip(split.images.split(batch_size), split.labels.split(batch_size), strict=True):
        scores = net(images)
        loss += F.cross_entropy(scores, labels).item() * len(labels)
        correct += count_correct(scores, labels)
    return loss / len(split), correct / len(split)


def train(net: ConvNet, train_split: Split, test_split: Split, batch_size: int, board: Dashboard) -> History:
    """Fit `net` to `train_split` and score it on `test_split` after each epoch."""
    history = History()
    optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for _ in board.epochs():
        net.train()
        all_correct = 0
        for chosen in board.steps(torch.randperm(len(train_split)).split(batch_size)):
            labels = train_split.labels[chosen]
            scores = net(train_split.images[chosen])
            loss = F.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            correct = count_correct(scores, labels)
            all_correct += correct
            history.batch_losses.append(loss.item())
            board.log(loss=loss, accuracy=correct / len(labels))
        test_loss, test_accuracy = evaluate(net, test_split)
        board.log("test", loss=test_loss, accuracy=test_accuracy)
        history.test_losses.append(test_loss)
        history.train_accuracies.append(all_correct / len(train_split))
        history.test_accuracies.append(test_accuracy)
    return history


def draw_curves(history: History, path: Path) -> None:
    """Save loss and accuracy against epochs as a picture."""
    train_colour, test_colour = "#9aa5b1", "#d9480f"
    epochs = np.arange(1, len(history.test_losses) + 1)
    batches = np.arange(1, len(history.batch_losses) + 1) / len(history.batch_losses) * len(epochs)

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    losses.plot(batches, history.batch_losses, color=train_colour, linewidth=0.8, label="training, each batch")
    losses.plot(epochs, history.test_losses, color=test_colour, linewidth=2, marker="o", markersize=4, label="test")
    losses.set(title="Loss", xlabel="epoch", ylabel="cross entropy", yscale="log")
    accuracies.plot(
        epochs, [100 * a for a in history.train_accuracies], color=train_colour, linewidth=2, label="training"
    )
    test_percent = [100 * a for a in history.test_accuracies]
    accuracies.plot(epochs, test_percent, color=test_colour, linewidth=2, marker="o", markersize=4, label="test")
    accuracies.set(title=f"Accuracy: {test_percent[-1]:.1f}% on the test digits", xlabel="epoch", ylabel="%")
    for axes in (losses, accuracies):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def positive(text: str) -> int:
    """An argument that must be 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def main() -> None:
    """Read the options, train, report, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=positive, default=12)
    parser.add_argument("--batch-size", type=positive, default=64)
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order of the batches")
    parser.add_argument("--out", type=Path, default=Path("demo-output/digits.png"), help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    train_split, test_split = load_digits()
    net = ConvNet()
    size = sum(parameter.numel() for parameter in net.parameters())
    print(f"{len(train_split)} training digits, {len(test_split)} test digits, {size} parameters", flush=True)
    started = time.monotonic()
    with Dashboard(options.epochs, title="digits", formats={"accuracy": ".2%"}) as board:
        history = train(net, train_split, test_split, options.batch_size, board)
    elapsed = time.monotonic() - started
    draw_curves(history, options.out)
    print(f"final test accuracy: {history.test_accuracies[-1]:.2%} after {elapsed:.0f} s; curves: {options.out}")


if __name__ == "__main__":
    main()
