"""Fine-tune a ResNet: first its new last layer, then all of it: `python examples/resnet_fine_tuning.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.models import ResNet
from flambeau.models.resnet import BasicBlock
from flambeau.nn import functional as F


def load_images() -> Tensor:
    """The training images as numbers from 0 to 1, (n, 784)."""
    with np.load(Path(__file__).parent / "digits" / "mnist5k.npz") as arrays:
        return torch.from_numpy(arrays["train_images"]).float().flatten(1) / 255


def small_resnet(classes: int) -> ResNet:
    """A ResNet of ten layers. For pictures of 224 pixels, take `models.resnet18(weights="resnet18.pth")` here."""
    return ResNet(BasicBlock, [1, 1, 1, 1], num_classes=classes)


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """One pass over the images: the mean loss, and the part of right answers."""
    model.train()
    total, right = 0.0, 0
    for indices in torch.randperm(len(images)).split(50):
        scores = model(images[indices])
        loss = F.cross_entropy(scores, labels[indices])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(indices)
        right += int((scores.argmax(dim=1) == labels[indices]).sum())
    return total / len(images), right / len(images)


def main() -> None:
    """Learn to tell bright digits from dark ones, then reuse what was learnt to tell four brightnesses apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a picture of the right answers in each epoch")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    images = load_images()[: arguments.images].view(-1, 1, 28, 28).repeat(1, 3, 1, 1)
    ink = images.mean(dim=(1, 2, 3))
    first_task = (ink > ink.median()).long()
    second_task = torch.bucketize(ink, torch.quantile(ink, torch.tensor([0.25, 0.5, 0.75])))

    model, history = small_resnet(classes=2), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number in range(arguments.epochs):
        loss, right = epoch(model, optimizer, images, first_task)
        print(f"first task      epoch {number}  loss {loss:.4f}  right {100 * right:.1f} %", flush=True)
        history.append(right)

    model.fc = nn.Linear(model.fc.in_features, 4)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("fc."))
    optimizer = torch.optim.Adam(model.fc.parameters(), lr=1e-2)
    for number in range(arguments.epochs):
        loss, right = epoch(model, optimizer, images, second_task)
        print(f"last layer      epoch {number}  loss {loss:.4f}  right {100 * right:.1f} %", flush=True)
        history.append(right)

    model.requires_grad_()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for number in range(arguments.epochs):
        loss, right = epoch(model, optimizer, images, second_task)
        print(f"all layers      epoch {number}  loss {loss:.4f}  right {100 * right:.1f} %", flush=True)
        history.append(right)
    if arguments.out:
        save(history, arguments.out)


def save(history: list[float], path: Path) -> None:
    """The part of right answers in each epoch of the three phases."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    phase = len(history) // 3
    for number, name in enumerate(("first task", "second task, last layer", "second task, all layers")):
        epochs = range(number * phase, (number + 1) * phase)
        axes.plot(epochs, [100 * history[each] for each in epochs], marker="o", label=name)
    axes.set(xlabel="epoch", ylabel="% right")
    axes.legend(frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
