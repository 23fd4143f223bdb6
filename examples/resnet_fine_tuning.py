"""Fine-tune a ResNet: first its new last layer, then all of it: `python examples/resnet_fine_tuning.py`."""

from __future__ import annotations

import argparse

from vae import load_images

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.models import ResNet
from flambeau.models.resnet import BasicBlock
from flambeau.nn import functional as F


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
    arguments = parser.parse_args()

    torch.manual_seed(0)
    images = load_images()[: arguments.images].view(-1, 1, 28, 28).repeat(1, 3, 1, 1)
    ink = images.mean(dim=(1, 2, 3))
    first_task = (ink > ink.median()).long()
    second_task = torch.bucketize(ink, torch.quantile(ink, torch.tensor([0.25, 0.5, 0.75])))

    model = small_resnet(classes=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number in range(arguments.epochs):
        loss, right = epoch(model, optimizer, images, first_task)
        print(f"first task      epoch {number}  loss {loss:.4f}  right {100 * right:.1f} %", flush=True)

    model.fc = nn.Linear(model.fc.in_features, 4)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("fc."))
    optimizer = torch.optim.Adam(model.fc.parameters(), lr=1e-2)
    for number in range(arguments.epochs):
        loss, right = epoch(model, optimizer, images, second_task)
        print(f"last layer      epoch {number}  loss {loss:.4f}  right {100 * right:.1f} %", flush=True)

    model.requires_grad_()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for number in range(arguments.epochs):
        loss, right = epoch(model, optimizer, images, second_task)
        print(f"all layers      epoch {number}  loss {loss:.4f}  right {100 * right:.1f} %", flush=True)


if __name__ == "__main__":
    main()
