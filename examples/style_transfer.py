"""Optimise the pixels of an image until it has the texture of another: `python examples/style_transfer.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flambeau as torch
from flambeau import Tensor, nn


def gram(features: Tensor) -> Tensor:
    """Which features occur together, wherever they are: the style of an image."""
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


def main() -> None:
    """Random filters are enough to see it work; a trained network gives better pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, help="a picture of content, style and result")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    filters = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 16, 5, padding=2), nn.ReLU())
    filters.requires_grad_(False)
    axis = torch.linspace(-1, 1, 48)
    content = ((axis[:, None] ** 2 + axis**2) < 0.5).float()[None, None]  # a disc
    style = (0.5 + 0.5 * ((axis[:, None] + axis) * 20).sin())[None, None]  # stripes
    image = content.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([image], max_iter=4)
    wanted, kept = gram(filters(style)), filters(content)
    losses = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        features = filters(image)
        loss = 100 * ((gram(features) - wanted) ** 2).sum() + ((features - kept) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    for step in range(arguments.steps // 4 + 1):
        optimizer.step(closure)
        if step % 5 == 0:
            print(f"step {4 * step:3d}  loss {losses[-1]:.5f}", flush=True)
    for row in image.detach()[0, 0, ::3].clamp(0, 1).tolist():
        print("".join(" .:-=+*#%@"[int(9.99 * value)] for value in row))
    if arguments.out:
        save({"content": content, "style": style, "result": image.detach()}, arguments.out)


def save(images: dict[str, Tensor], path: Path) -> None:
    """The images side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 2.4), layout="constrained")
    for axes, (title, image) in zip(figure.subplots(1, len(images)), images.items(), strict=True):
        axes.imshow(image[0, 0].numpy(), cmap="gray", vmin=0, vmax=1)
        axes.set_title(title)
        axes.axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    main()
