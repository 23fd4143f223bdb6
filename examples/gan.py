"""One network draws digits, another tells them from real ones; both learn: `python examples/gan.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.nn import functional as F


def load_images() -> Tensor:
    """The training images as numbers from 0 to 1, (n, 784)."""
    with np.load(Path(__file__).parent / "digits" / "mnist5k.npz") as arrays:
        return torch.from_numpy(arrays["train_images"]).float().flatten(1) / 255


def main() -> None:
    """Train both in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--out", type=Path, help="a picture of 64 drawn digits")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    images = load_images() * 2 - 1
    generator = nn.Sequential(
        nn.Linear(32, 128), nn.LeakyReLU(0.2), nn.Linear(128, 256), nn.LeakyReLU(0.2), nn.Linear(256, 784), nn.Tanh()
    )
    judge = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(256, 1))
    learn_to_draw = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999))
    learn_to_judge = torch.optim.Adam(judge.parameters(), lr=5e-4, betas=(0.5, 0.999))
    for epoch in range(arguments.epochs):
        for real in images[torch.randperm(len(images))].split(50):
            drawn = generator(torch.randn(len(real), 32))
            # The judge is to say 1 of real images and 0 of drawn ones; `detach` keeps the generator out of this.
            loss = F.softplus(-judge(real)).mean() + F.softplus(judge(drawn.detach())).mean()
            learn_to_judge.zero_grad()
            loss.backward()
            learn_to_judge.step()
            # The generator is to make the judge say 1.
            fooled = F.softplus(-judge(drawn)).mean()
            learn_to_draw.zero_grad()
            fooled.backward()
            learn_to_draw.step()
        print(f"epoch {epoch:2d}  judge {loss.item():.3f}  generator {fooled.item():.3f}", flush=True)
    with torch.no_grad():
        drawn = generator(torch.randn(64, 32)).view(64, 28, 28)
    for row in drawn[0, ::2].tolist():
        print("".join(" .:-=+*#%@"[int(4.99 * (value + 1))] for value in row))
    if arguments.out:
        save(drawn, arguments.out)


def save(images: Tensor, path: Path) -> None:
    """Eight rows of eight digits."""
    from matplotlib.image import imsave

    imsave(path, images.view(8, 8, 28, 28).transpose(1, 2).reshape(224, 224).numpy(), cmap="gray")


if __name__ == "__main__":
    main()
